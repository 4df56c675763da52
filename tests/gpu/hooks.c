/* A unit with all that a kernel of one's own has beside its functions; it notes who was called. */
#include <string.h>

static char told[4096];

static int note(const char* what)
{
  strcat(strcat(told, *told ? " " : ""), what);
  return 0;
}
void hooks_forget(void)
{
  *told = 0;
}
const char* hooks_told(void)
{
  return told;
}
int policygen_shape(const long long* axes, long long* sizes, long long* bytes)
{
  sizes[0] = bytes[0] = bytes[1] = axes[0];
  return 0;
}
void policygen_roles(int* roles)
{
  roles[0] = 1; /* filled */
  roles[1] = 2; /* compared */
}
int policygen_fill(void* const* buffers, const long long* axes, const long long* sizes, int exact)
{
  (void) axes;
  (void) exact;
  memset(buffers[0], 1, (size_t) sizes[0]);
  return 0;
}
long long policygen_compare(
  void* const* buffers, void* const* expected, const long long* axes, const long long* sizes, int exact, long long* first, int* buffer)
{
  (void) axes;
  (void) exact;
  *buffer = 1;
  for (long long at = 0, differ = 0; at < sizes[0]; ++at)
  {
    differ += ((char*) buffers[1])[at] != ((char*) expected[1])[at];
    *first = differ == 1 ? at : *first;
    if (at + 1 == sizes[0])
    {
      return differ;
    }
  }
  return 0;
}

/* Base copies; what is right is a copy, too. */
static int copy(void* const* buffers, const long long* sizes, const char* who)
{
  memcpy(buffers[1], buffers[0], (size_t) sizes[0]);
  return note(who);
}
#define FUNCTION(name, who)                                                                       \
  int policygen_run_##name(void* const* buffers, const long long* sizes, void* arena, void* stream) \
  {                                                                                               \
    (void) arena;                                                                                 \
    (void) stream;                                                                                \
    return copy(buffers, sizes, who);                                                             \
  }
FUNCTION(0, "base")
FUNCTION(0_reference, "reference")
FUNCTION(1, "plain")
FUNCTION(2, "wrong")
int policygen_run_0_before(void* const* buffers, const long long* sizes)
{
  (void) buffers;
  (void) sizes;
  return note("before");
}
int policygen_run_0_after(void* const* buffers, const long long* sizes)
{
  (void) buffers;
  (void) sizes;
  return note("after");
}
int policygen_run_0_facts(void* const* buffers, const long long* sizes, long long* facts)
{
  (void) buffers;
  for (int at = 0; at < 9; ++at)
  {
    facts[at] = sizes[0] + at;
  }
  return note("facts");
}
int policygen_run_2_reference(void* const* buffers, const long long* sizes, void* arena, void* stream)
{
  (void) arena;
  (void) stream;
  memset(buffers[1], 9, (size_t) sizes[0]);
  return note("other");
}
int policygen_run_1_facts(void* const* buffers, const long long* sizes, long long* facts)
{
  (void) buffers;
  (void) sizes;
  (void) facts;
  return 1; /* cudaErrorInvalidValue */
}
int policygen_run_2_before(void* const* buffers, const long long* sizes)
{
  (void) buffers;
  (void) sizes;
  return 2; /* cudaErrorMemoryAllocation */
}
