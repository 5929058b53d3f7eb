/* NVLink without a switch: which rings the hybrid cube-mesh of eight devices has. */
#include "plan/comm.h"

#include <string.h>

enum { MOST = 8, RINGS = 6 };

/* Links between each two (NVIDIA DGX-1 with Volta): two quads, each fully joined, and each device
 * with its twin in the other quad. */
static const int links[MOST][MOST] = {
    { 0, 1, 1, 2, 2, 0, 0, 0 }, { 1, 0, 2, 1, 0, 2, 0, 0 }, { 1, 2, 0, 2, 0, 0, 1, 0 },
    { 2, 1, 2, 0, 0, 0, 0, 1 }, { 2, 0, 0, 0, 0, 1, 1, 2 }, { 0, 2, 0, 0, 1, 0, 2, 1 },
    { 0, 0, 1, 0, 1, 2, 0, 2 }, { 0, 0, 0, 1, 2, 1, 2, 0 },
};

typedef struct Search {
    int n, best;
    int free[MOST][MOST]; /* directed links that no ring has */
    int tries;
} Search;

static void extend(Search *s, int rings, int at, int seen, int left);

/* Whether no further ring can be had: a device has no way in or out. */
static int most_more(const Search *s)
{
    int most = RINGS;
    for (int i = 0; i < s->n; i++) {
        int out = 0, in = 0;
        for (int j = 0; j < s->n; j++) {
            out += s->free[i][j];
            in += s->free[j][i];
        }
        most = QN_MIN(most, QN_MIN(out, in));
    }
    return most;
}

static void add_ring(Search *s, int rings)
{
    s->best = QN_MAX(s->best, rings);
    if (rings + most_more(s) > s->best)
        extend(s, rings, 0, 1, s->n - 1);
}

/* Continues a ring from device 0 that stands at `at`. */
static void extend(Search *s, int rings, int at, int seen, int left)
{
    if (s->tries++ > 200000)
        return;
    if (!left && s->free[at][0]) {
        s->free[at][0]--;
        add_ring(s, rings + 1);
        s->free[at][0]++;
    }
    for (int i = 1; i < s->n; i++) {
        if (seen >> i & 1 || !s->free[at][i])
            continue;
        s->free[at][i]--;
        extend(s, rings, i, seen | 1 << i, left - 1);
        s->free[at][i]++;
    }
}

int qn_mesh_rings(int n)
{
    Search s = { .n = QN_MIN(QN_MAX(n, 2), MOST) };
    memcpy(s.free, links, sizeof links);
    add_ring(&s, 0);
    if (s.best)
        return s.best;
    /* none goes round: there and back through the devices with the fewest links */
    int fewest = RINGS;
    for (int i = 0; i < s.n; i++) {
        int all = 0;
        for (int j = 0; j < s.n; j++)
            all += links[i][j];
        fewest = QN_MIN(fewest, all);
    }
    return fewest;
}
