/* requests.c - see requests.h. */
#include "server/requests.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/answer.h"

void requests_add(struct requests *requests, const struct control_message *message, int fd,
		  const struct peer_rights *rights)
{
	struct request *request = requests->count < REQUESTS_MAX ? calloc(1, sizeof(*request)) : NULL;
	struct request **link = &requests->first;

	if (!request) {
		answer_send_error(fd, "the collector has too many requests to answer: try again");
		return;
	}
	request->type = message->type;
	request->fd = fd;
	request->rights = *rights;
	snprintf(request->target, sizeof(request->target), "%s", message->target);
	request->action = message->action;
	request->hold_ms = message->hold_ms;
	request->hold = message->hold;
	request->start_time = message->start_time;
	snprintf(request->name, sizeof(request->name), "%s", message->name ? message->name : "");
	while (*link)
		link = &(*link)->next;
	*link = request;
	requests->count++;
}

struct request *requests_take(struct requests *requests, struct request **link)
{
	struct request *request = *link;

	*link = request->next;
	requests->count--;
	return request;
}

void requests_done(struct requests *requests)
{
	while (requests->first) {
		struct request *request = requests_take(requests, &requests->first);

		close(request->fd);
		free(request);
	}
}
