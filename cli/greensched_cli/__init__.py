"""The greensched command: thin verbs over the components."""
