"""Learned models: ONNX bundles, checked before they serve and guarded while they serve.

Imports `library`, `rules`, `encoding` and `costs`. Begin with `bundle.py`.
"""
