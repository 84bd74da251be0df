package crewhttp

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
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
// random one without a key. Handler.read has checked the key.
func (h *Handler) inputID(r *request) string {
	key, _ := entrance.IdempotencyKey(r.Request)
	if key == "" {
		return "door/" + rand.Text()
	}
	return "door/" + derived(
		"request", h.topics.Agent, nameOf(r.Caller), key, r.Method, r.URL.EscapedPath(), r.URL.RawQuery, string(r.Body))
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

// put writes the records of a request, unless they could not be encoded.
func (h *Handler) put(r *request, err error, records ...processors.Outbound) (rejection answer, ok bool) {
	if err != nil {
		return badBody(errBody), false
	}
	if refusal := r.Publish(h.to, records...); refusal != nil {
		return refusal.Answer(), false
	}
	return answer{}, true
}

// send writes the input of a request and returns the answer: 202 with the given members and the input's ID, if it is
// acknowledged.
func (h *Handler) send(r *request, t topics.Topic[topics.CrewInput], key, id string, body crewbody.Body, members ...any) answer {
	out, err := inputTo(t, key, id, body)
	if rejection, ok := h.put(r, err, out); !ok {
		return rejection
	}
	r.Record(auth.AuditWrite, key, id, http.StatusAccepted)
	return accepted(append(members, "inputId", id)...)
}

// sendToCrews writes inputs to crews under one ID. session is the crew of the request, if there is one.
func (h *Handler) sendToCrews(r *request, session, id string, bodies map[string]crewbody.Body) (rejection answer, ok bool) {
	var records []processors.Outbound
	var failed error
	for _, crew := range slices.Sorted(maps.Keys(bodies)) {
		out, err := inputTo(h.topics.CrewInputs, crew, id, bodies[crew])
		records, failed = append(records, out), cmp.Or(failed, err)
	}
	if len(records) == 0 {
		return answer{}, true
	}
	if rejection, ok = h.put(r, failed, records...); ok {
		r.Record(auth.AuditWrite, session, id, http.StatusAccepted)
	}
	return rejection, ok
}

// sendFirst sends an input to a crew that makes the row of a subject, so that the caller's next requests find it.
func (h *Handler) sendFirst(r *request, subject, crew, id string, body crewbody.Body, members ...any) answer {
	a := h.send(r, h.topics.CrewInputs, crew, id, body, members...)
	if a.Status == http.StatusAccepted {
		h.index.expect(subject, crew)
	}
	return a
}

// The limits of one caller.
const (
	maxMessages    = 50
	messagesWindow = 10 * time.Second
	maxSpawns      = 30
	spawnsWindow   = time.Minute
	// maxWindows is how many callers are remembered. The one that was silent for the longest time is forgotten first.
	maxWindows = 10_000
)

// windows limits how often each caller does something: n times in any period. It is safe for concurrent use.
type windows struct {
	n      int
	period time.Duration

	mu    sync.Mutex
	byKey *simplelru.LRU[string, []time.Time] // the last n times
}

func newWindows(n int, period time.Duration) *windows {
	known, _ := simplelru.NewLRU[string, []time.Time](maxWindows, nil) // its only error is a size of 0
	return &windows{n: n, period: period, byKey: known}
}

// take counts one time of a caller. If it returns a time, the limit is reached, nothing was counted, and the caller may try
// again after that time.
func (w *windows) take(key string, now time.Time) (wait time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	times, _ := w.byKey.Get(key)
	if len(times) == w.n {
		if wait = w.period - now.Sub(times[0]); wait > 0 {
			return wait
		}
		times = times[1:]
	}
	w.byKey.Add(key, append(times, now))
	return 0
}
