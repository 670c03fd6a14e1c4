// What `#include <hip/hip_runtime.h>` finds for a CPU: HIP device code on x86-64, 64 lanes a wave.
#pragma once
#include <stddef.h>
#include <stdint.h>

#include <ks/target.h>

#include <ks/vector_types.h>

#include <ks/index.h>
#include <ks/math.h>
#include <ks/intrinsics.h>
#include <ks/atomics.h>
#include <ks/sync.h>
#include <ks/wave.h>
#include <ks/amdgcn.h>
#include <ks/mfma.h>

typedef unsigned int uint;
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned long ulong;
