// What `#include <hip/hip_runtime.h>` finds for a GPU where ROCm's own headers are not installed.
#pragma once
#include <stddef.h>
#include <stdint.h>

#include <ks/target.h>

#include <ks/vector_types.h>

#include <ks/atomics.h>
#include <ks/index.h>
#include <ks/intrinsics.h>
#include <ks/math.h>
#include <ks/sync.h>
#include <ks/wave.h>

typedef unsigned int uint;
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned long ulong;
