#include "allocations.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HAS_OWN_ALLOCATOR 1
#endif
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HAS_OWN_ALLOCATOR 1
#endif
#endif

_Thread_local int allocations_left = -1;
_Thread_local bool allocations_have_failed;

#define NEVER INT32_MAX

/* Counts down with each allocation of any thread; the one that finds 0 fails. */
static _Atomic int until_one_fails = NEVER;

static atomic_bool spares_libraries;

void allocations_spare_libraries(void)
{
    atomic_store(&spares_libraries, true);
}

void allocations_fail_one(int allowed)
{
    atomic_store(&until_one_fails, allowed);
}

bool allocations_fail_none(void)
{
    return atomic_exchange(&until_one_fails, NEVER) < 0;
}

bool allocations_can_fail(void)
{
#ifdef HAS_OWN_ALLOCATOR
    return false;
#else
    return true;
#endif
}

#ifndef HAS_OWN_ALLOCATOR
static bool fail(void)
{
    errno = ENOMEM; /* the C library itself relies on it */
    return false;
}

/* NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp): names of the linker */
extern const char __executable_start[];
extern const char etext[];
/* NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp) */

static bool is_of_library(uintptr_t caller)
{
    return caller < (uintptr_t)__executable_start || caller >= (uintptr_t)etext;
}

static bool may_allocate(const void *caller)
{
    if (atomic_load_explicit(&spares_libraries, memory_order_relaxed) && is_of_library((uintptr_t)caller))
        return true;
    if (atomic_load_explicit(&until_one_fails, memory_order_relaxed) != NEVER &&
        atomic_fetch_sub(&until_one_fails, 1) == 0)
        return fail();
    if (allocations_left < 0)
        return true;
    if (allocations_left == 0) {
        allocations_have_failed = true;
        return fail();
    }
    allocations_left--;
    return true;
}

/* The program's own functions come before those of the C library. */
/* NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp): these are its own names */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);
/* NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp) */

void *malloc(size_t size)
{
    return may_allocate(__builtin_return_address(0)) ? __libc_malloc(size) : NULL;
}

void *calloc(size_t count, size_t size)
{
    return may_allocate(__builtin_return_address(0)) ? __libc_calloc(count, size) : NULL;
}

void *realloc(void *memory, size_t size)
{
    return may_allocate(__builtin_return_address(0)) ? __libc_realloc(memory, size) : NULL;
}
#endif
