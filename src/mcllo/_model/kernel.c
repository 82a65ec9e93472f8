/* `_model/kernel` and `_model/many_fits` in C: A(theta) with gradient and Hessian, and many minima.

   Names and shapes are those of kernel.py: log odds (K, n), theta = (tau, gamma),
   eta_ji = tau_j + gamma_j l_ji, g_i = softmax(eta_i, 0), r_i the root of row i's weight,
   a_i = r_i (g_1i .. g_Ki, g_1i l_1i .. g_Ki l_Ki).

   Rows are taken in blocks of BLOCK from the first one on. A block is summed by itself, LANES rows
   side by side; blocks are added in order and the lanes at the end. So the sums depend on the rows
   and on the processor's vectors, never on who else is at work. A row's largest eta, if positive,
   is taken off before exp. exp below LOWEST is 0; NaN stays NaN.

   The file includes itself once for each width of vectors (AVX-512, AVX2, and what every processor
   of the kind has), and `mcllo_level` says which of them runs here. It needs GCC or Clang. */

#ifndef LANES

#include <float.h>
#include <math.h> /* sqrt, fabs and isfinite are made of instructions, not of calls */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#ifdef __x86_64__
#include <cpuid.h>
#endif

#define BLOCK 64
#define TILE 3
#define SIDE 4
#define EACH for (int e = 0; e < SIDE; e++)
#define LOWEST (-708.0)
#define LOG2_E 0x1.71547652b82fep+0
#define LN2_HIGH 0x1.62e42feep-1
#define LN2_LOW 0x1.a39ef35793c76p-33
/* as in kernel.py, newton.py and linalg.py */
#define ROUNDED_UP (1.0 + 2e-15)
#define ENOUGH_DECREASE 1e-4
#define ROUNDING 1e-13
#define REACH 1e8
#define MAX_HALVINGS 40
#define FLATTEST 0.01
#define STEEPEST 0.98
#define NEGLIGIBLE 1e-14
#define NO_CURVATURE 1e-290

#ifdef _WIN32
#define PUBLIC __declspec(dllexport)
#else
#define PUBLIC __attribute__((visibility("default")))
#endif

typedef ptrdiff_t Size;

/* Minima of f_b(x) = A_b(theta) - theta . s_b + ridge / 2 |theta - centre|^2 over `free` numbers x,
   theta = origin_b + basis x, from x = 0, by at most `most` steps.

   given: log odds of class j from odds + j * stride on; `root` or NULL, all weights 1; `statistic` or
   NULL, s = 0; `basis`, (2K, free), or NULL, x = theta - origin; `reach` or NULL, where f_b is no larger the search may
   end; `first` or NULL, value, gradient and Hessian of A at the origin that all share. The odds,
   roots and origins of the next problem are so many numbers apart, 0 where they are the same.

   `light` asks for the Hessian's diagonal alone, for products of the a_i are most of the work where
   classes are many; it is for no steps and no basis.

   made: theta where it ended; f at the start and there; gradient (free) and Hessian (free, free)
   before the last step; the number of steps, negative where no minimum was found. */
typedef struct {
    const double *odds, *root, *statistic, *origin, *basis, *centre, *reach, *first;
    double *theta, *start, *value, *gradient, *hessian;
    int64_t *steps;
    double ridge, tol;
    Size k, n, stride, count, free, most, odds_apart, root_apart, origin_apart, light;
} Problems;

static inline double larger(double a, double b) { return b > a ? b : a; }

#define COPY(to, from, count) memcpy(to, from, (size_t)(count) * sizeof(double))
#define CLEAR(to, count) memset(to, 0, (size_t)(count) * sizeof(double))
#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
#define NAME(f) PASTE(f, LEVEL)

#ifdef __x86_64__
/* or each product would load its factors again */
#define IN_REGISTERS(x, y) __asm__("" : "+v"(x), "+v"(y))
#define LEVEL _avx512
#define LANES 8
#define TARGET __attribute__((target("avx512f,avx512dq,avx512vl,avx2,fma")))
#define LARGER(top, x) __asm__("vmaxpd %0, %1, %0" : "+v"(top) : "v"(x)) /* top where x is NaN */
#include "kernel.c"
#undef LEVEL
#undef LANES
#undef TARGET
#define LEVEL _avx2
#define LANES 4
#define TARGET __attribute__((target("avx2,fma")))
#include "kernel.c"
#undef LEVEL
#undef LANES
#undef TARGET
#else
#define IN_REGISTERS(x, y)
#endif
#define LEVEL _plain
#define LANES 2
#define TARGET
#undef LARGER
#define LARGER(top, x) \
    (top = (V)(((U)x & (U)(x > top)) | ((U)top & ~(U)(x > top))))
#include "kernel.c"

/* The widest vectors that processor and system have: 2 AVX-512, 1 AVX2, 0 neither. */
PUBLIC int mcllo_level(void) {
#ifdef __x86_64__
    unsigned a, b, c, d, saved;
    const unsigned first = bit_OSXSAVE | bit_AVX | bit_FMA;
    const unsigned wide = bit_AVX512F | bit_AVX512DQ | bit_AVX512VL | bit_AVX2;
    if (!__get_cpuid(1, &a, &b, &c, &d) || (c & first) != first) return 0;
    __asm__("xgetbv" : "=a"(saved), "=d"(d) : "c"(0));
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (saved & 0x06) != 0x06) return 0;
    if ((b & wide) == wide && (saved & 0xe6) == 0xe6) return 2;
    return b & bit_AVX2 ? 1 : 0;
#else
    return 0;
#endif
}

#ifdef __x86_64__
#define WIDEST(level, f, ...) \
    (level == 2 ? f##_avx512(__VA_ARGS__) : level ? f##_avx2(__VA_ARGS__) : f##_plain(__VA_ARGS__))
#else
#define WIDEST(level, f, ...) ((void)level, f##_plain(__VA_ARGS__))
#endif

/* Each returns 0, or 1 where there was no memory. A level that the processor has not must not be
   asked for. */
PUBLIC int mcllo_minimize(int level, const Problems *problems) {
    return WIDEST(level, minimize, problems);
}

/* made: theta (2K), which is given, then A(theta), its gradient and its Hessian. */
PUBLIC int mcllo_pass(int level, const double *odds, const double *root, Size k, Size n, Size stride,
                      int light, double *made) {
    double start, *value = made + 2 * k, *gradient = value + 1, *hessian = gradient + 2 * k;
    int64_t steps;
    return mcllo_minimize(level, &(Problems){.odds = odds, .root = root, .origin = made,
        .theta = made, .start = &start, .value = value, .gradient = gradient, .hessian = hessian,
        .steps = &steps, .k = k, .n = n, .stride = stride, .count = 1, .free = 2 * k, .light = light});
}

/* made: -(H + d diag H)^-1 gradient (size), H (size, size). */
PUBLIC int mcllo_direction(int level, Size size, const double *hessian, const double *gradient,
                           double *made) {
    double *factor = malloc((size_t)(size * size + size + 1) * sizeof(double));
    if (!factor) return 1;
    WIDEST(level, solve, size, hessian, gradient, factor, factor + size * size, made);
    free(factor);
    return 0;
}

PUBLIC int mcllo_softmax(int level, double *eta, Size k, Size n, Size stride, double *logs) {
    return WIDEST(level, softmax, eta, k, n, stride, logs);
}

PUBLIC int mcllo_log(int level, double *x, Size n) { return WIDEST(level, logs, x, n); }

PUBLIC int mcllo_log_odds(int level, const double *x, Size n, Size c, Size apart, Size b,
                          double *odds, Size stride) {
    return WIDEST(level, log_odds, x, n, c, apart, b, odds, stride);
}

PUBLIC int mcllo_labels(int level, const double *probs, const double *u, Size c, Size n, Size count,
                        Size *labels) {
    return WIDEST(level, labels, probs, u, c, n, count, labels);
}

/* made: A(theta); sums of w g and w g l, of w g l^2, and of w g^2 (1, l, l^2), each for K classes.
   logs: A of each row, which `mcllo_product` wants. */
PUBLIC int mcllo_moments(int level, const double *odds, const double *root, Size k, Size n,
                         Size stride, const double *theta, double *logs, double *made) {
    return WIDEST(level, moments, odds, root, k, n, stride, theta, logs, made);
}

/* made: sum_i a_i (a_i . v), (2K). */
PUBLIC int mcllo_product(int level, const double *odds, const double *root, Size k, Size n,
                         Size stride, const double *theta, const double *logs, const double *v,
                         double *made) {
    return WIDEST(level, product, odds, root, k, n, stride, theta, logs, v, made);
}

/* Add up, for each class, the labels (count, n) and the values (c, n) of the rows that have it. */
PUBLIC int mcllo_label_sums(const Size *labels, const double *values, Size c, Size n, Size count,
                            double *counts, double *sums) {
    for (Size b = 0; b < count; b++, labels += n, counts += c, sums += c)
        for (Size i = 0; i < n; i++)
            counts[labels[i]] += 1.0, sums[labels[i]] += values[labels[i] * n + i];
    return 0;
}

#ifdef SOURCE
/* Which kernel.c this was made of: the library is not used with another. */
PUBLIC const uint32_t mcllo_source = SOURCE;
#endif

#else /* once for each width */

typedef double NAME(V) __attribute__((vector_size(8 * LANES)));
typedef uint64_t NAME(U) __attribute__((vector_size(8 * LANES)));
#define V NAME(V)
#define U NAME(U)

static inline TARGET V NAME(load)(const double *p) {
    V v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline TARGET void NAME(store)(double *p, V v) { memcpy(p, &v, sizeof v); }

/* exp(x) = 2^n exp(r), |r| <= log(2) / 2, by a polynomial good to 2e-17; x below 709. SIDE vectors
   side by side: while one waits for its last product, the others have theirs. */
static inline TARGET void NAME(exp)(V *x) {
    const double shift = 0x1.8p52 + 1023; /* adding it rounds; its last bits are 2^n's exponent */
    const double by[] = {0x1.289185613a3d6p-22, 0x1.71de0dae63bb3p-19, 0x1.a019b90d2ae7ap-16,
                         0x1.a01a01a7c41d5p-13, 0x1.6c16c1788bd90p-10, 0x1.11111111109b3p-7,
                         0x1.5555555553d63p-5,  0x1.5555555555556p-3,  0x1.0000000000001p-1, 1, 1};
    V m[SIDE], r[SIDE], p[SIDE];
    EACH m[e] = x[e] * LOG2_E + shift;
    EACH p[e] = m[e] - shift;
    EACH r[e] = x[e] - p[e] * LN2_HIGH - p[e] * LN2_LOW;
    EACH p[e] = (V){0} + 0x1.af38a9b0ec855p-26;
    for (int d = 0; d < 11; d++) EACH p[e] = p[e] * r[e] + by[d];
    EACH p[e] *= (V)((U)m[e] << 52);
    EACH x[e] = (V)((U)p[e] & ~(U)(x[e] < LOWEST));
}

/* log(x) as in fdlibm: x = 2^n (1 + f), s = f / (2 + f). */
static inline TARGET V NAME(log)(V x) {
    const uint64_t half = 0x3fe6a09e667f3bcd, raised = 0x4000000000000000; /* sqrt(1/2), 1024 << 52 */
    U small = (U)(x < DBL_MIN), known = (U)(x > 0.0);
    U bits = (U)(x * (V)(((U)((V){0} + 0x1p54) & small) | ((U)((V){0} + 1.0) & ~small))) - half;
    V n = (V)(((bits + raised) >> 52) | 0x4330000000000000) - (0x1p52 + 1024);
    n -= (V)((U)((V){0} + 54.0) & small);
    V f = (V)((bits & 0xfffffffffffff) + half) - 1.0;
    V s = f / (f + 2.0), z = s * s, h = 0.5 * f * f;
    const double by[] = {1.531383769920937332e-01, 1.818357216161805012e-01, 2.222219843214978396e-01,
                         2.857142874366239149e-01, 3.999999999940941908e-01, 6.666666666666735130e-01};
    V p = (V){0} + 1.479819860511658591e-01;
    for (int d = 0; d < 6; d++) p = p * z + by[d];
    V y = n * LN2_HIGH - ((h - (s * (h + z * p) + n * LN2_LOW)) - f);
    U none = (U)((V){0} - INFINITY) | ~(U)(x >= 0.0); /* all bits: NaN */
    return (V)(((U)y & known) | (none & ~known));
}

/* Write exp(eta - top) of a few rows to g, top and sum exp(eta - top). `base` is the baseline's
   eta: 0, or -INFINITY where there is none. */
static inline TARGET void NAME(exponentials)(const double *theta, Size k, double base,
                                             const double *odds, Size stride, double *g, V *top,
                                             V *sum) {
    EACH top[e] = (V){0} + base;
    for (Size j = 0; j < k; j++)
        EACH {
            V eta = NAME(load)(odds + j * stride + e * LANES) * theta[k + j] + theta[j];
            LARGER(top[e], eta);
        }
    EACH sum[e] = base - top[e];
    NAME(exp)(sum);
    for (Size j = 0; j < k; j++) {
        const double *own = odds + j * stride;
        V x[SIDE];
        EACH x[e] = NAME(load)(own + e * LANES) * theta[k + j] + theta[j] - top[e];
        for (int l = 0; l < SIDE * LANES; l += 8) __builtin_prefetch(own + BLOCK + l);
        NAME(exp)(x);
        EACH NAME(store)(g + j * BLOCK + e * LANES, x[e]), sum[e] += x[e];
    }
}

/* Add the products of a block's rows of a, TILE by TILE at a time, to the lanes of the gram. */
static inline TARGET void NAME(products)(const double *a, Size tiles, Size width, V *gram) {
    for (Size s = 0; s < tiles; s++)
        for (Size t = 0; t <= s; t++, gram += TILE * TILE) {
            const double *x = a + s * TILE * BLOCK, *y = a + t * TILE * BLOCK;
            V sums[TILE * TILE] = {{0}};
            for (Size i = 0; i < width; i += LANES) {
                V u[TILE], v[TILE];
                for (int e = 0; e < TILE; e++) {
                    u[e] = NAME(load)(x + e * BLOCK + i), v[e] = NAME(load)(y + e * BLOCK + i);
                    IN_REGISTERS(u[e], v[e]);
                }
                for (int e = 0; e < TILE * TILE; e++) sums[e] += u[e / TILE] * v[e % TILE];
            }
            for (int e = 0; e < TILE * TILE; e++) gram[e] += sums[e];
        }
}

static inline TARGET double NAME(added)(V v) {
    double sum = v[0];
    for (int l = 1; l < LANES; l++) sum += v[l];
    return sum;
}

/* What a pass needs beside its rows: room for a block, and for sums of LANES rows side by side. */
typedef struct {
    double *a, *tail, *root;
    V *linear, *gram;
    Size tiles, n_sums;
} NAME(Room);

/* Write A(theta), its gradient (2K) and its Hessian (2K, 2K), or diagonal (2K), of these rows. */
static TARGET double NAME(pass)(const Problems *p, const double *all, const double *roots,
                                const double *theta, NAME(Room) *room, double *gradient,
                                double *hessian) {
    Size k = p->k, n = p->n, size = 2 * k, light = p->light;
    double *a = room->a;
    V *linear = room->linear, *gram = room->gram, value = {0};
    memset(linear, 0, (size_t)room->n_sums * sizeof(V));
    for (Size i = 0; i < BLOCK; i++) room->root[i] = 1.0;
    for (Size first = 0; first < n; first += BLOCK) {
        Size m = n - first < BLOCK ? n - first : BLOCK, width = (m + LANES - 1) / LANES * LANES;
        Size stride = p->stride, whole = (m + SIDE * LANES - 1) / (SIDE * LANES) * (SIDE * LANES);
        const double *odds = all + first;
        V block = {0}, product = {0};
        if (whole > m) {
            for (Size j = 0; j < k; j++) COPY(room->tail + j * BLOCK, odds + j * stride, m);
            odds = room->tail, stride = BLOCK;
        }
        if (roots) COPY(room->root, roots + first, m);
        for (Size i = m; i < whole; i++) room->root[i] = 0.0;
        product += 1.0;
        for (Size i = 0; i < whole; i += SIDE * LANES) {
            V top[SIDE], sum[SIDE], r[SIDE], scale[SIDE];
            NAME(exponentials)(theta, k, 0.0, odds + i, stride, a + i, top, sum);
            EACH r[e] = NAME(load)(room->root + i + e * LANES);
            EACH scale[e] = r[e] / sum[e];
            if (roots || whole > m)
                EACH block += r[e] * r[e] * (NAME(log)(sum[e]) + top[e]);
            else
                EACH block += top[e], product *= sum[e];
            for (Size j = 0; j < k; j++) {
                V s0 = linear[j], s1 = linear[k + j], s2 = linear[2 * k + j], s3 = {0}, s4 = {0};
                double *own = a + j * BLOCK + i, *times = own + k * BLOCK;
                EACH {
                    V l = NAME(load)(odds + j * stride + i + e * LANES);
                    V g = NAME(load)(own + e * LANES) * scale[e], gl = g * l;
                    s0 += g * r[e], s1 += gl * r[e], s2 += gl * l * r[e];
                    if (light) {
                        s3 += g * g, s4 += gl * gl;
                    } else {
                        NAME(store)(own + e * LANES, g);
                        NAME(store)(times + e * LANES, gl);
                    }
                }
                linear[j] = s0, linear[k + j] = s1, linear[2 * k + j] = s2;
                if (light) gram[j] += s3, gram[k + j] += s4;
            }
        }
        value += block + NAME(log)(product);
        if (!light) NAME(products)(a, room->tiles, width, gram);
    }
    for (Size j = 0; j < size; j++) gradient[j] = NAME(added)(linear[j]);
    if (light) {
        for (Size j = 0; j < size; j++) {
            double first = NAME(added)(linear[j < k ? j : k + j]);
            hessian[j] = ROUNDED_UP * first - NAME(added)(gram[j]);
        }
        return NAME(added)(value);
    }
    for (Size s = 0; s < room->tiles; s++)
        for (Size t = 0; t <= s; t++)
            for (Size e = 0; e < TILE * TILE; e++, gram++) {
                Size i = TILE * s + e / TILE, j = TILE * t + e % TILE;
                if (i >= size || j > i) continue;
                hessian[i * size + j] = hessian[j * size + i] = -NAME(added)(*gram);
            }
    for (Size j = 0; j < k; j++) {
        double cross = gradient[k + j];
        hessian[j * size + j] += ROUNDED_UP * gradient[j];
        hessian[(k + j) * size + k + j] += ROUNDED_UP * NAME(added)(linear[2 * k + j]);
        hessian[j * size + k + j] += cross, hessian[(k + j) * size + j] += cross;
    }
    return NAME(added)(value);
}

/* out = -(H + d diag H)^-1 gradient, d the least that makes H definite, as `solve_damped`. */
static TARGET void NAME(solve)(Size m, const double *h, const double *gradient, double *factor,
                               double *scale, double *out) {
    double largest = 0.0;
    for (Size i = 0; i < m; i++) largest = larger(largest, fabs(h[i * m + i]));
    double least = largest > NO_CURVATURE ? NEGLIGIBLE * largest : 1.0;
    for (Size i = 0; i < m; i++) scale[i] = 1.0 / sqrt(larger(fabs(h[i * m + i]), least));
    const double dampings[] = {0.0,  1e-14, 1e-13, 1e-12, 1e-11, 1e-10, 1e-9, 1e-8, 1e-7,
                               1e-6, 1e-5,  1e-4,  1e-3,  1e-2,  1e-1,  1.0,  10.0, 100.0};
    for (int tried = 0; tried < 18; tried++) {
        double d = dampings[tried];
        Size j = 0, finite = 1;
        for (Size i = 0; i < m; i++)
            for (Size l = i; l < m; l++)
                factor[i * m + l] = h[i * m + l] * scale[i] * scale[l] + (l == i ? d : 0.0);
        for (; j < m; j++) { /* rows of the upper factor */
            double *own = factor + j * m;
            if (!(own[j] > 0.0)) break;
            double root = sqrt(own[j]);
            for (Size l = j; l < m; l++) own[l] /= root;
            for (Size i = j + 1; i < m; i++)
                for (Size l = i; l < m; l++) factor[i * m + l] -= own[i] * own[l];
        }
        if (j < m) continue;
        for (Size i = 0; i < m; i++) out[i] = -gradient[i] * scale[i];
        for (Size i = 0; i < m; i++) {
            out[i] /= factor[i * m + i];
            for (Size l = i + 1; l < m; l++) out[l] -= factor[i * m + l] * out[i];
        }
        for (Size i = m; i-- > 0;) {
            for (Size l = i + 1; l < m; l++) out[i] -= factor[i * m + l] * out[l];
            out[i] /= factor[i * m + i];
        }
        for (Size i = 0; i < m; i++) finite &= isfinite(out[i] *= scale[i]) != 0;
        if (finite) return;
    }
    for (Size i = 0; i < m; i++) out[i] = -gradient[i] * scale[i] * scale[i];
}

/* Where problem b stands: a point, and value, gradient and Hessian there, side by side. */
typedef struct {
    double value, *x, *theta, *gradient, *hessian;
} NAME(Point);

/* theta = from + basis x */
static TARGET void NAME(away)(const Problems *p, const double *from, const double *x,
                              double *theta) {
    for (Size i = 0; i < 2 * p->k; i++) {
        double sum = p->basis ? 0.0 : x[i];
        for (Size l = 0; p->basis && l < p->free; l++) sum += p->basis[i * p->free + l] * x[l];
        theta[i] = from[i] + sum;
    }
}

/* Fill a point from its x; `whole` is room for 2K, (2K, 2K) and (2K, free) numbers. */
static TARGET void NAME(move)(const Problems *p, Size b, NAME(Room) *room, double *whole,
                              const double *first, NAME(Point) *at) {
    Size size = 2 * p->k, m = p->free;
    double *gradient = p->basis ? whole : at->gradient, *hessian = gradient + size;
    double *product = hessian + size * size;
    NAME(away)(p, p->origin + b * p->origin_apart, at->x, at->theta);
    at->value = first ? first[0] : 0.0;
    if (first)
        COPY(gradient, first + 1, size + size * size);
    else
        at->value = NAME(pass)(p, p->odds + b * p->odds_apart,
                               p->root ? p->root + b * p->root_apart : NULL, at->theta, room,
                               gradient, hessian);
    for (Size i = 0; i < size; i++) {
        double far = p->ridge > 0.0 ? at->theta[i] - p->centre[i] : 0.0;
        double s = p->statistic ? p->statistic[b * size + i] : 0.0;
        at->value += 0.5 * p->ridge * far * far - at->theta[i] * s;
        gradient[i] += p->ridge * far - s;
        hessian[p->light ? i : i * size + i] += p->ridge;
    }
    if (!p->basis) return;
    CLEAR(at->gradient, m), CLEAR(at->hessian, m * m), CLEAR(product, size * m);
    for (Size i = 0; i < size; i++) {
        const double *row = p->basis + i * m;
        for (Size l = 0; l < m; l++) at->gradient[l] += row[l] * gradient[i];
        for (Size j = 0; j < size; j++)
            for (Size l = 0; l < m; l++)
                product[i * m + l] += hessian[i * size + j] * p->basis[j * m + l];
        for (Size j = 0; j < m; j++)
            for (Size l = 0; l < m; l++) at->hessian[j * m + l] += row[j] * product[i * m + l];
    }
}

/* How many of Newton's steps lead to the end of the slope where curvature along them goes on
   falling as it fell from the last point on, by exp(-fall) a step: that of saturated rows does. */
static TARGET double NAME(steps)(Size m, const NAME(Point) *at, const NAME(Point) *last,
                                 const double *direction, double decrement) {
    double along = 0.0, own = 0.0, before = 0.0;
    for (Size i = 0; i < m; i++) {
        double moved = at->x[i] - last->x[i];
        along -= at->gradient[i] * moved;
        for (Size l = 0; l < m; l++) {
            own += moved * at->hessian[i * m + l] * (at->x[l] - last->x[l]);
            before += direction[i] * last->hessian[i * m + l] * direction[l];
        }
    }
    double fall = NAME(log)((V){0} + before / decrement)[0] * along / own;
    if (!(fall > FLATTEST)) return 1.0;
    fall = fall < STEEPEST ? fall : STEEPEST;
    return -NAME(log)((V){0} + (1.0 - fall))[0] / fall;
}

/* Halve the step until the value falls enough, as `line_search`; whether it did. */
static TARGET int NAME(search)(const Problems *p, Size b, NAME(Room) *room, double *whole,
                               const NAME(Point) *at, double *direction, double step,
                               NAME(Point) *trial) {
    double excess = 1.0, slope = 0.0, rounding = ROUNDING * (1.0 + fabs(at->value));
    for (Size i = 0; i < p->free; i++)
        excess = larger(excess, fabs(direction[i]) / (REACH * (1.0 + fabs(at->x[i]))));
    for (Size i = 0; i < p->free; i++) slope -= at->gradient[i] * (direction[i] /= excess);
    for (int halvings = 0; halvings < MAX_HALVINGS; halvings++, step = step > 1.0 ? 1.0 : 0.5 * step) {
        for (Size i = 0; i < p->free; i++) trial->x[i] = at->x[i] + step * direction[i];
        NAME(move)(p, b, room, whole, NULL, trial);
        double highest = at->value - ENOUGH_DECREASE * step * larger(0.0, slope) + rounding;
        if (isfinite(trial->value) && trial->value <= highest) return 1;
    }
    return 0;
}

/* Fill all that is made for problem b, from the point `at` on. */
static TARGET void NAME(descend)(const Problems *p, Size b, NAME(Room) *room, double *whole,
                                 double *factor, NAME(Point) at, NAME(Point) trial) {
    Size m = p->free, n = 0, done = 0;
    double *scale = factor + m * m, *direction = scale + m, decrement = 0.0;
    CLEAR(at.x, m);
    NAME(move)(p, b, room, whole, p->first, &at);
    p->start[b] = at.value;
    while (n < p->most && !(p->reach && at.value <= p->reach[b])) {
        NAME(solve)(m, at.hessian, at.gradient, factor, scale, direction);
        decrement = 0.0, n++;
        for (Size i = 0; i < m; i++) decrement -= at.gradient[i] * direction[i];
        done = decrement <= p->tol;
        if (done) break;
        double step = n > 1 ? NAME(steps)(m, &at, &trial, direction, decrement) : 1.0;
        if (!NAME(search)(p, b, room, whole, &at, direction, step, &trial)) break;
        NAME(Point) last = at;
        at = trial, trial = last;
    }
    if (done) NAME(away)(p, at.theta, direction, at.theta);
    COPY(p->theta + b * 2 * p->k, at.theta, 2 * p->k);
    COPY(p->gradient + b * m, at.gradient, m);
    COPY(p->hessian + b * m * m, at.hessian, p->light ? m : m * m);
    p->value[b] = at.value - (done ? 0.5 * larger(0.0, decrement) : 0.0);
    p->steps[b] = done ? n : -n;
}

static TARGET int NAME(minimize)(const Problems *p) {
    Size k = p->k, size = 2 * k, m = p->free, point = size + 2 * m + m * m;
    NAME(Room) room = {.tiles = (size + TILE - 1) / TILE};
    room.n_sums = 3 * k + (p->light ? size : TILE * TILE * room.tiles * (room.tiles + 1) / 2);
    Size block = (TILE * room.tiles + k + 1) * BLOCK, rest = size + size * size + size * m;
    Size numbers = block + LANES * room.n_sums + 2 * point + m * m + 2 * m + rest;
    void *memory = malloc((size_t)(numbers + 8) * sizeof(double));
    if (!memory) return 1;
    room.a = (double *)(((uintptr_t)memory + 63) & ~(uintptr_t)63);
    CLEAR(room.a, block); /* what no row fills is no NaN */
    room.tail = room.a + TILE * room.tiles * BLOCK, room.root = room.tail + k * BLOCK;
    room.linear = (V *)(room.root + BLOCK), room.gram = room.linear + 3 * k;
    double *next = (double *)(room.linear + room.n_sums);
    NAME(Point) points[2];
    for (int q = 0; q < 2; q++, next += point)
        points[q] = (NAME(Point)){0.0, next, next + m, next + m + size, next + 2 * m + size};
    double *factor = next, *whole = factor + m * m + 2 * m;
    for (Size b = 0; b < p->count; b++)
        NAME(descend)(p, b, &room, whole, factor, points[0], points[1]);
    free(memory);
    return 0;
}

/* Replace eta (k, n) by its softmax over k; write log sum exp. */
static TARGET int NAME(softmax)(double *eta, Size k, Size n, Size stride, double *logs) {
    double *memory = malloc((size_t)(2 * k * BLOCK + 2 * BLOCK + 2 * k) * sizeof(double));
    if (!memory) return 1;
    double *g = memory, *tail = g + k * BLOCK, *own = tail + k * BLOCK, *scale = own + BLOCK;
    double *theta = scale + BLOCK;
    CLEAR(tail, k * BLOCK);
    for (Size j = 0; j < k; j++) theta[j] = 0.0, theta[k + j] = 1.0;
    for (Size first = 0; first < n; first += SIDE * LANES) {
        Size m = n - first < SIDE * LANES ? n - first : SIDE * LANES;
        V top[SIDE], sum[SIDE];
        for (Size j = 0; m < SIDE * LANES && j < k; j++)
            COPY(tail + j * BLOCK, eta + j * stride + first, m);
        NAME(exponentials)(theta, k, -INFINITY, m < SIDE * LANES ? tail : eta + first,
                           m < SIDE * LANES ? BLOCK : stride, g, top, sum);
        EACH NAME(store)(own + e * LANES, NAME(log)(sum[e]) + top[e]);
        EACH NAME(store)(scale + e * LANES, 1.0 / sum[e]);
        for (Size j = 0; j < k; j++)
            for (Size i = 0; i < m; i++)
                eta[j * stride + first + i] = g[j * BLOCK + i] * scale[i];
        COPY(logs + first, own, m);
    }
    free(memory);
    return 0;
}

/* SIDE * LANES rows from `first` on: where their log odds are and how far apart, roots of weights,
   0 for rows beyond the last, and how many rows there are. */
static inline TARGET Size NAME(some)(const double **odds, const double *roots, Size k, Size n,
                                     Size *stride, Size first, double *tail, double *root) {
    Size step = SIDE * LANES, m = n - first < step ? n - first : step;
    for (Size i = 0; i < step; i++) root[i] = i < m ? (roots ? roots[first + i] : 1.0) : 0.0;
    *odds += first;
    if (m < step) {
        for (Size j = 0; j < k; j++) COPY(tail + j * step, *odds + j * *stride, m);
        *odds = tail, *stride = step;
    }
    return m;
}

/* For many classes: no row's products, whose sums would be a matrix. */
static TARGET int NAME(moments)(const double *all, const double *roots, Size k, Size n, Size apart,
                                const double *theta, double *logs, double *made) {
    Size step = SIDE * LANES;
    void *memory = malloc((size_t)(k * (6 * LANES + BLOCK + step) + 8) * sizeof(double));
    if (!memory) return 1;
    V *sums = (V *)(((uintptr_t)memory + 63) & ~(uintptr_t)63), value = {0};
    double *g = (double *)(sums + 6 * k), *tail = g + k * BLOCK, root[SIDE * LANES], own_logs[SIDE * LANES];
    memset(sums, 0, (size_t)(6 * k) * sizeof(V));
    CLEAR(tail, k * step);
    for (Size first = 0; first < n; first += step) {
        const double *odds = all;
        Size stride = apart, m = NAME(some)(&odds, roots, k, n, &stride, first, tail, root);
        V top[SIDE], sum[SIDE], weight[SIDE], scale[SIDE];
        NAME(exponentials)(theta, k, 0.0, odds, stride, g, top, sum);
        EACH {
            V own = NAME(log)(sum[e]) + top[e];
            weight[e] = NAME(load)(root + e * LANES), weight[e] *= weight[e];
            value += weight[e] * own, scale[e] = 1.0 / sum[e];
            NAME(store)(own_logs + e * LANES, own);
        }
        COPY(logs + first, own_logs, m);
        for (Size j = 0; j < k; j++) {
            V s[6];
            for (int t = 0; t < 6; t++) s[t] = sums[6 * j + t];
            EACH {
                V l = NAME(load)(odds + j * stride + e * LANES);
                V p = NAME(load)(g + j * BLOCK + e * LANES) * scale[e], w = weight[e] * p, q = w * p;
                V wl = w * l, ql = q * l;
                s[0] += w, s[1] += wl, s[2] += wl * l, s[3] += q, s[4] += ql, s[5] += ql * l;
            }
            for (int t = 0; t < 6; t++) sums[6 * j + t] = s[t];
        }
    }
    made[0] = NAME(added)(value);
    for (Size j = 0; j < k; j++)
        for (int t = 0; t < 6; t++) made[1 + t * k + j] = NAME(added)(sums[6 * j + t]);
    free(memory);
    return 0;
}

static TARGET int NAME(product)(const double *all, const double *roots, Size k, Size n, Size apart,
                                const double *theta, const double *logs, const double *v,
                                double *made) {
    Size step = SIDE * LANES;
    void *memory = malloc((size_t)(2 * k * (LANES + step) + 8) * sizeof(double));
    if (!memory) return 1;
    V *sums = (V *)(((uintptr_t)memory + 63) & ~(uintptr_t)63);
    double *g = (double *)(sums + 2 * k), *tail = g + k * step, root[SIDE * LANES], own_logs[SIDE * LANES] = {0};
    memset(sums, 0, (size_t)(2 * k) * sizeof(V));
    CLEAR(tail, k * step);
    for (Size first = 0; first < n; first += step) {
        const double *odds = all;
        Size stride = apart, m = NAME(some)(&odds, roots, k, n, &stride, first, tail, root);
        V log[SIDE], dot[SIDE] = {{0}};
        COPY(own_logs, logs + first, m);
        EACH log[e] = NAME(load)(own_logs + e * LANES);
        for (Size j = 0; j < k; j++) {
            const double *own = odds + j * stride;
            V x[SIDE], l[SIDE];
            EACH l[e] = NAME(load)(own + e * LANES), x[e] = l[e] * theta[k + j] + theta[j] - log[e];
            for (Size i = 0; i < step; i += 8) __builtin_prefetch(own + step + i);
            NAME(exp)(x);
            EACH NAME(store)(g + j * step + e * LANES, x[e]), dot[e] += x[e] * (l[e] * v[k + j] + v[j]);
        }
        EACH {
            V r = NAME(load)(root + e * LANES);
            dot[e] *= r * r;
        }
        for (Size j = 0; j < k; j++) {
            V s0 = sums[2 * j], s1 = sums[2 * j + 1];
            EACH {
                V p = NAME(load)(g + j * step + e * LANES) * dot[e];
                s0 += p, s1 += p * NAME(load)(odds + j * stride + e * LANES);
            }
            sums[2 * j] = s0, sums[2 * j + 1] = s1;
        }
    }
    for (Size j = 0; j < k; j++)
        made[j] = NAME(added)(sums[2 * j]), made[k + j] = NAME(added)(sums[2 * j + 1]);
    free(memory);
    return 0;
}

/* Replace numbers by their logarithms. */
static TARGET int NAME(logs)(double *x, Size n) {
    Size i = 0;
    for (; i + LANES <= n; i += LANES) NAME(store)(x + i, NAME(log)(NAME(load)(x + i)));
    for (; i < n; i++) x[i] = NAME(log)((V){0} + x[i])[0];
    return 0;
}

/* Write log x_ij - log x_ib of rows x (n, c), class after class without b. */
static TARGET int NAME(log_odds)(const double *x, Size n, Size c, Size apart, Size b, double *odds,
                                 Size stride) {
    double *rows = malloc((size_t)(BLOCK * c) * sizeof(double));
    if (!rows) return 1;
    for (Size first = 0; first < n; first += BLOCK) {
        Size m = n - first < BLOCK ? n - first : BLOCK;
        for (Size i = 0; i < m; i++) COPY(rows + i * c, x + (first + i) * apart, c);
        NAME(logs)(rows, m * c);
        for (Size j = 0; j < c; j++) {
            if (j == b) continue;
            double *own = odds + (j < b ? j : j - 1) * stride + first;
            for (Size i = 0; i < m; i++) own[i] = rows[i * c + j] - rows[i * c + b];
        }
    }
    free(rows);
    return 0;
}

/* Write the class of each row that its number u (count, n) stands for, by probabilities (c, n): how
   many of their sums up to a class are below it. */
static TARGET int NAME(labels)(const double *probs, const double *u, Size c, Size n, Size count,
                               Size *labels) {
    double *edges = malloc((size_t)(c * BLOCK) * sizeof(double));
    if (!edges) return 1;
    for (Size first = 0; first < n; first += BLOCK) {
        Size m = n - first < BLOCK ? n - first : BLOCK;
        COPY(edges, probs + first, m);
        for (Size j = 1; j < c - 1; j++)
            for (Size i = 0; i < m; i++)
                edges[j * BLOCK + i] = edges[(j - 1) * BLOCK + i] + probs[j * n + first + i];
        for (Size b = 0; b < count; b++) {
            const double *own = u + b * n + first;
            Size found[BLOCK] = {0};
            for (Size j = 0; j < c - 1; j++)
                for (Size i = 0; i < m; i++) found[i] += own[i] > edges[j * BLOCK + i];
            memcpy(labels + b * n + first, found, (size_t)m * sizeof(Size));
        }
    }
    free(edges);
    return 0;
}

#undef V
#undef U
#endif
