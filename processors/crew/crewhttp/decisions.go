package crewhttp

import (
	"net/http"
	"slices"
	"strings"

	"github.com/turntable-streams/turntable/internal/crewbody"
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
	err := h.index.look(r.Context(), r.Caller, ofCrews, func() bool {
		crew, d, ok = h.index.decision(h.index.crewsOf(r.Caller, ""), r.Parts[0])
		return ok
	})
	if err == nil && d.Status == team.Recorded { // it may be resolved by now
		if err = h.index.catchUp(r.Context()); err == nil {
			crew, d, ok = h.index.decision(h.index.crewsOf(r.Caller, ""), r.Parts[0])
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
	id, err := inputID(r, h.topics.Agent)
	if err != nil {
		return badBody(err)
	}
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
	input, err := inputID(r, h.topics.Agent)
	if err != nil {
		return badBody(err)
	}
	bodies := map[string]crewbody.Body{}
	for crew, ids := range byCrew {
		bodies[crew] = crewbody.Decide{DecisionIDs: ids, Action: b.Action, By: nameOf(r.Caller)}
	}
	if rejection, ok := h.sendToCrews(r, "", input, bodies); !ok {
		return rejection
	}
	return accepted("decisionIds", taken, "skipped", skipped, "inputId", input)
}
