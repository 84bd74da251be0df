package crewhttp

import (
	"context"
	"crypto/rand"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/crew/internal/team"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
	"github.com/turntable-streams/turntable/processors/internal/entrance"
)

// maxBatch is how many decisions a request resolves.
const maxBatch = 500

func forbidden(r *request, text string) answer {
	return r.Refuse(&entrance.Refusal{Status: http.StatusForbidden, Text: text}).Answer()
}

// decision finds a decision in the crews of a caller.
func (x *Index) decision(crews []namedCrew, id string) (crew string, d view.Decision, ok bool) {
	for _, c := range crews {
		for _, d := range team.Decisions(c.State) {
			if d.ID == id {
				return c.id, d, true
			}
		}
	}
	return "", view.Decision{}, false
}

// decide resolves one decision.
func (h *Handler) decide(r *request) answer {
	if _, err := read[struct {
		Reason string `json:"reason"`
	}](r.Body); err != nil {
		return badBody(err)
	}
	action := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
	var (
		crew string
		d    view.Decision
		ok   bool
	)
	find := func() bool {
		crew, d, ok = h.index.decision(h.index.crewsOf(r.Caller, ""), r.Parts[0])
		return ok
	}
	err := h.index.look(r.Context(), r.Caller, ofCrews, find)
	if err == nil && d.Status == team.Recorded { // it may be resolved by now
		if err = h.index.catchUpRows(r.Context()); err == nil {
			find()
		}
	}
	if err != nil {
		return notReady()
	}
	switch {
	case !ok:
		return entrance.Failed(http.StatusNotFound, "Unknown decision")
	case d.Status == team.Verdicts[action]:
		return entrance.OK(d)
	case d.Status != team.Recorded:
		return answer{Status: http.StatusConflict, Body: entrance.Object("error", "The decision is resolved", "decision", d)}
	}
	if refusal := r.Session(crew); refusal != nil {
		return refusal.Answer()
	}
	id := h.inputID(r)
	return h.send(r, h.topics.CrewInputs, crew, id, crewbody.Decide{
		DecisionIDs: []string{d.ID}, Action: action, By: nameOf(r.Caller),
	}, "decisionId", d.ID)
}

// decideAll resolves several decisions. Those that are unknown or resolved are left out and named in the answer.
func (h *Handler) decideAll(r *request) answer {
	b, err := read[struct {
		Action      string   `json:"action"`
		IDs         []string `json:"ids"`
		DecisionIDs []string `json:"decisionIds"`
	}](r.Body)
	ids := append(b.IDs, b.DecisionIDs...)
	if err != nil || team.Verdicts[b.Action] == "" || len(ids) == 0 || len(ids) > maxBatch {
		return badBody(errBody)
	}
	var crews []namedCrew
	if err := h.index.lookNewest(r.Context(), r.Caller, ofCrews, func() bool {
		crews = h.index.crewsOf(r.Caller, "")
		return !slices.ContainsFunc(ids, func(id string) bool {
			_, _, ok := h.index.decision(crews, id)
			return !ok
		})
	}); err != nil {
		return notReady()
	}
	byCrew, taken, skipped := map[string][]string{}, []string{}, []string{}
	for _, id := range ids {
		if slices.Contains(taken, id) {
			continue
		}
		crew, d, ok := h.index.decision(crews, id)
		if !ok || d.Status != team.Recorded {
			skipped = append(skipped, id)
			continue
		}
		byCrew[crew], taken = append(byCrew[crew], id), append(taken, id)
	}
	input := h.inputID(r)
	bodies := map[string]crewbody.Body{}
	for crew, ids := range byCrew {
		bodies[crew] = crewbody.Decide{DecisionIDs: ids, Action: b.Action, By: nameOf(r.Caller)}
	}
	if rejection, ok := h.sendToCrews(r, "", input, bodies); !ok {
		return rejection
	}
	return accepted("decisionIds", taken, "skipped", skipped, "inputId", input)
}

const (
	// holdFor is how long a hold lasts unless it is repeated, and holdEvery how often it is repeated. A decision confirms
	// itself after a minute, so a crew that comes into being meanwhile is held in time.
	holdFor   = 90 * time.Second
	holdEvery = 30 * time.Second
)

// hold keeps the open decisions from confirming themselves while a person looks at them.
type hold struct {
	session *session
	cancel  context.CancelFunc
	ended   sync.WaitGroup
	held    map[string]struct{} // crews
}

func (s *session) openQueue(wish) error {
	switch {
	case !s.client.Caller.Can(auth.Answer):
		return errForbidden
	case s.hold != nil:
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.hold = &hold{session: s, cancel: cancel, held: map[string]struct{}{}}
	s.hold.ended.Go(func() { s.hold.keep(ctx) })
	return nil
}

func (s *session) closeQueue(wish) error {
	s.releaseHold()
	return nil
}

// end ends the hold and waits until the crews are told.
func (h *hold) end() {
	h.cancel()
	h.ended.Wait()
}

// keep holds the decisions of the caller's crews until ctx ends.
func (h *hold) keep(ctx context.Context) {
	s := h.session
	for ctx.Err() == nil {
		s.handler.index.mu.Lock()
		project := s.client.project
		s.handler.index.mu.Unlock()
		for _, c := range s.handler.index.crewsOf(s.client.Caller, "") {
			if id := c.GetRoster().GetProjectId(); project == "" || id == "" || id == project {
				h.held[c.id] = struct{}{}
			}
		}
		h.tell(true)
		clock.Sleep(ctx, s.handler.config.Clock, holdEvery)
	}
	h.tell(false)
}

// tell writes the hold to the crews, or its end. A failure is logged; the crews end the hold by themselves.
func (h *hold) tell(held bool) {
	s := h.session
	body := crewbody.QueueHeld{Client: s.client.id, Held: held}
	if held {
		body.UntilMS = s.handler.config.Clock.Now().Add(holdFor).UnixMilli()
	}
	var records []processors.Outbound
	id := "door/" + rand.Text()
	for crew := range h.held {
		if out, err := inputTo(s.handler.topics.CrewInputs, crew, id, body); err == nil {
			records = append(records, out)
		}
	}
	if len(records) > 0 {
		_ = s.handler.publish(records...)
	}
}
