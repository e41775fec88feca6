"""Whether `make fuzz` runs: then tests try all they can, else what `make test` has time for."""

from hypothesis import settings

IS_FUZZING = settings.get_current_profile_name() == "new"
