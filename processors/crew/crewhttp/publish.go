package crewhttp

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"net/http"
	"time"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/internal/digests"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/topics"
)

const (
	// publishTimeout is how long a request waits for the acknowledgement of the brokers, and framePublishTimeout a frame: a
	// client's pings are not answered meanwhile.
	publishTimeout      = 30 * time.Second
	framePublishTimeout = 10 * time.Second
	// via is the Via of the decisions that the door writes.
	via = "crew"
	// person is who a caller without a name is.
	person = "user"
)

type publishTimes struct{ request, frame time.Duration }

// nameOf is who a caller is in records.
func nameOf(c auth.Caller) string {
	if name := c.Name(); name != "" {
		return name
	}
	return person
}

// inputID returns the ID of what a request asks for: the same for a repeat with the same key and body, in every process, or a
// random one without a key.
func (r *request) inputID(agent string) (string, error) {
	key, err := idempotencyKey(r.Request)
	if err != nil {
		return "", err
	}
	if key == "" {
		return "door/" + rand.Text(), nil
	}
	return "door/" + derived("request", agent, nameOf(r.Caller), key, r.Method, r.URL.EscapedPath(), r.URL.RawQuery, string(r.body)), nil
}

// derived returns an ID that depends only on its arguments.
func derived(parts ...string) string {
	d := digests.Of("crew-door", parts...)
	return hex.EncodeToString(d[:])
}

// uuidOf returns an ID in the form of a UUID that depends only on a text.
func uuidOf(text string) string {
	d := digests.Of("crew-door-uuid", text)
	u := d[:16]
	u[6], u[8] = u[6]&0x0f|0x80, u[8]&0x3f|0x80 // version 8, variant 10
	h := hex.EncodeToString(u)
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// inputTo returns the record of an input for the row of a key.
func inputTo(t topics.Topic[topics.CrewInput], key, id string, body crewbody.Body) (processors.Outbound, error) {
	return processors.OutboundOf(t, key, topics.CrewInput{
		InputID: id, Kind: body.Kind(), Body: crewbody.Encode(body),
	}, id)
}

// publish writes records within a time. A disconnect of the client does not cancel it: they may be written already.
func (h *Handler) publish(ctx context.Context, within time.Duration, records ...processors.Outbound) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
	defer cancel()
	err := h.to.Publish(ctx, records...)
	if err != nil && !errors.Is(err, processors.ErrTooLarge) {
		h.config.Logger.Error("request failed: its record may not have been written", zap.String("door", "crew"),
			zap.String("agent", h.topics.Agent), zap.String("topic", records[0].Topic), zap.Error(err))
	}
	return err
}

// send writes the input of a request and returns the answer: 202 with the given members and the input's ID, if it is
// acknowledged.
func (h *Handler) send(r *request, t topics.Topic[topics.CrewInput], key, id string, body crewbody.Body, members ...any) answer {
	out, err := inputTo(t, key, id, body)
	if err != nil {
		return badBody(errBody)
	}
	if rejection, ok := h.written(r, out); !ok {
		return rejection
	}
	r.Record(auth.AuditWrite, key, id, http.StatusAccepted)
	return accepted(append(members, "inputId", id)...)
}

// sendFirst sends an input to a crew that makes the row of a subject, so that the caller's next requests find it.
func (h *Handler) sendFirst(r *request, subject, crew, id string, body crewbody.Body, members ...any) answer {
	a := h.send(r, h.topics.CrewInputs, crew, id, body, members...)
	if a.status == http.StatusAccepted {
		h.index.expect(subject, crew)
	}
	return a
}

// written writes the records of a request. ok is false if the request must be answered with rejection.
func (h *Handler) written(r *request, records ...processors.Outbound) (rejection answer, ok bool) {
	switch err := h.publish(r.Context(), h.publishes.request, records...); {
	case err == nil:
		return answer{}, true
	case errors.Is(err, processors.ErrTooLarge):
		return errorAnswer(http.StatusRequestEntityTooLarge, "Request is too large for a record"), false
	}
	return internalError(), false
}
