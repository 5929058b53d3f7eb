/* A line chart as one SVG file that needs nothing else: no scripts, no fonts, no links. */
#ifndef QN_BASE_SVG_H
#define QN_BASE_SVG_H

#include "base/chart.h"

/* Appends the whole document to `out`, 800 by 450 pixels. An empty chart says so in its middle. */
void qn_svg_chart(QnStr *out, const QnChart *chart);

/* Text between tags or in quotes, in SVG and HTML: what means something there is written as an
 * entity, what XML cannot hold is left out, bytes that are not UTF-8 become U+FFFD. */
void qn_svg_escape(QnStr *out, const char *text);

#endif
