/* A kernel without modules has no /proc/modules, and Scaphandre ends where it should only warn that
   RAPL's are missing (procfs::modules().unwrap()). Linked with -Wl,--wrap=open64 it finds an empty list. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>

int __real_open64(const char *path, int flags, ...);

int __wrap_open64(const char *path, int flags, ...)
{
  va_list more;
  va_start(more, flags);
  int mode = va_arg(more, int);
  va_end(more);
  int file = __real_open64(path, flags, mode);
  if (file < 0 && errno == ENOENT && strcmp(path, "/proc/modules") == 0)
    return __real_open64("/dev/null", flags, mode);
  return file;
}
