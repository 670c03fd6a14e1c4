// Functions of the host's C library that have no builtin; builtins become calls into the same library
// (runtime/libm.cpp).
#pragma once

namespace ks::libm {
extern "C" {
double exp10(double);
float exp10f(float);
double j0(double), j1(double), y0(double), y1(double);
float j0f(float), j1f(float), y0f(float), y1f(float);
double jn(int, double), yn(int, double);
float jnf(int, float), ynf(int, float);
void sincos(double, double*, double*);
void sincosf(float, float*, float*);
}
}  // namespace ks::libm
using ks::libm::exp10, ks::libm::exp10f, ks::libm::sincos, ks::libm::sincosf;
using ks::libm::j0, ks::libm::j0f, ks::libm::j1, ks::libm::j1f, ks::libm::jn, ks::libm::jnf;
using ks::libm::y0, ks::libm::y0f, ks::libm::y1, ks::libm::y1f, ks::libm::yn, ks::libm::ynf;
