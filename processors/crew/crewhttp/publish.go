package crewhttp

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"maps"
	"net/http"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/internal/digests"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/internal/entrance"
	"github.com/turntable-streams/turntable/topics"
)

const (
	// publishTimeout is how long a frame waits for the acknowledgement of the brokers: a client's pings are not answered meanwhile.
	publishTimeout = 10 * time.Second
	// via is the Via of the decisions that the door writes.
	via = "crew"
	// person is who a caller without a name is.
	person = "user"
)

// nameOf is who a caller is in records.
func nameOf(c auth.Caller) string {
	if name := c.Name(); name != "" {
		return name
	}
	return person
}

// inputID returns the ID of what a request asks for: the same for a repeat with the same key and body, in every process, or a
// random one without a key.
func inputID(r *request, agent string) (string, error) {
	key, ok := entrance.IdempotencyKey(r.Request)
	if !ok {
		return "", errKey
	}
	if key == "" {
		return "door/" + rand.Text(), nil
	}
	return "door/" + derived("request", agent, nameOf(r.Caller), key, r.Method, r.URL.EscapedPath(), r.URL.RawQuery, string(r.Body)), nil
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

// publish writes the records of a frame.
func (h *Handler) publish(records ...processors.Outbound) error {
	ctx, cancel := context.WithTimeout(context.Background(), publishTimeout)
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
	if refusal := r.Publish(h.to, out); refusal != nil {
		return refusal.Answer()
	}
	r.Record(auth.AuditWrite, key, id, http.StatusAccepted)
	return accepted(append(members, "inputId", id)...)
}

// sendToCrews writes inputs to crews under one ID. session is the crew of the request, if there is one.
func (h *Handler) sendToCrews(r *request, session, id string, bodies map[string]crewbody.Body) (rejection answer, ok bool) {
	var records []processors.Outbound
	for _, crew := range slices.Sorted(maps.Keys(bodies)) {
		out, err := inputTo(h.topics.CrewInputs, crew, id, bodies[crew])
		if err != nil {
			return badBody(errBody), false
		}
		records = append(records, out)
	}
	if len(records) == 0 {
		return answer{}, true
	}
	if refusal := r.Publish(h.to, records...); refusal != nil {
		return refusal.Answer(), false
	}
	r.Record(auth.AuditWrite, session, id, http.StatusAccepted)
	return answer{}, true
}

// sendFirst sends an input to a crew that makes the row of a subject, so that the caller's next requests find it.
func (h *Handler) sendFirst(r *request, subject, crew, id string, body crewbody.Body, members ...any) answer {
	a := h.send(r, h.topics.CrewInputs, crew, id, body, members...)
	if a.Status == http.StatusAccepted {
		h.index.expect(subject, crew)
	}
	return a
}
