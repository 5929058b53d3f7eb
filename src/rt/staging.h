/* A batch that travels to the device while another one is computed: a ring of pinned host buffers,
 * one block of the device where the batch arrives, and events that keep the two queues in order.
 * The inputs of plans keep their addresses, so that captured runs stay valid. */
#ifndef QN_RT_STAGING_H
#define QN_RT_STAGING_H

#include "rt/device.h"

typedef struct QnStaging QnStaging;

enum { QN_STAGING_PARTS = 4 };

/* Whether the device has a second queue. */
bool qn_staging_is_there(const QnDevice *d);

/* For batches of n_parts arrays of so many bytes. */
QnStatus qn_staging_new(QnDevice *d, const size_t *bytes, int n_parts, QnStaging **out);
void qn_staging_free(QnStaging *s); /* NULL is fine; waits for what is on its way */
/* On the device, beside the plans. */
size_t qn_staging_bytes(const QnStaging *s);

/* Sends a batch: src may be changed when this returns. It waits for the one before the last to have
 * arrived, not for what is computed. The batch that was sent before must have been taken. */
QnStatus qn_staging_send(QnStaging *s, const void *const *src);
/* Copies the batch that was sent to dst (NULL: this part is not needed), before whatever is
 * enqueued to compute after this. */
QnStatus qn_staging_take(QnStaging *s, void *const *dst);
/* Whether a batch was sent and not taken. */
bool qn_staging_is_full(const QnStaging *s);

#endif
