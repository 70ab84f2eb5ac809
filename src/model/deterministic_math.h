// exp, log, sin and cos in double, within a few units in the last place. A C library picks variants of these by CPU, whose last
// bits differ; these give the same bits everywhere, so that tables and samples do too.
#pragma once

namespace braid::model {

double fixed_exp(double x);
double fixed_log(double x);  // x > 0 and normal

struct SinCos {
  double sin = 0.0;
  double cos = 1.0;
};
SinCos fixed_sin_cos(double x);  // |x| < 2^30

}  // namespace braid::model
