/* Devices and models by the names that other people's tables give them. */
#ifndef QN_PLAN_MATCH_H
#define QN_PLAN_MATCH_H

#include "plan/cost.h"
#include "plan/device.h"
#include "plan/models.h"

/* "NVIDIA A100-SXM4-80GB", "Tesla V100-SXM2-16GB", "1080Ti", "H100": where a name leaves open which
 * of several is meant, the one for servers with the fewest further words. NULL: none is near. */
const QnCard *qn_match_card(const QnCatalogue *c, const char *name);
/* "ResNet-50", "ViT-B/16", "Mistral 7B". */
const QnModel *qn_match_model(const char *name);

/* What is known and named nearly so; NULL: nothing is. */
const char *qn_match_near_model(const char *name);
const char *qn_match_near_card(const QnCatalogue *c, const char *name);
const char *qn_match_near_numbers(const char *name);

#endif
