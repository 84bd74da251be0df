package crewhttp

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
	"github.com/turntable-streams/turntable/processors/internal/entrance"
)

// group returns the crew of a group that a request names: crewId is needed only if several crews have a group of the name.
func (h *Handler) group(r *request, name, crew string) (id string, rejection answer, ok bool) {
	crew = cmp.Or(r.URL.Query().Get("crewId"), crew)
	var found []string
	of := ofCrews
	if crew != "" {
		of = only(mailbox.Crew(crew))
	}
	err := h.index.look(r.Context(), r.Caller, of, func() bool {
		found = nil
		for _, c := range h.index.crewsOf(r.Caller, crew) {
			if slices.ContainsFunc(c.GetTalk().Groups(), func(g view.Group) bool { return g.Name == name }) {
				found = append(found, c.id)
			}
		}
		return len(found) > 0
	})
	if err != nil {
		return "", notReady(), false
	}
	switch len(found) {
	case 0:
		return "", entrance.Failed(http.StatusNotFound, "Unknown group"), false
	case 1:
	default:
		return "", entrance.Failed(http.StatusConflict, "Several crews have a group of this name: name crewId"), false
	}
	if refusal := r.Session(found[0]); refusal != nil {
		return "", refusal.Answer(), false
	}
	return found[0], answer{}, true
}

// groupSay sends a person's message to a group.
func (h *Handler) groupSay(r *request) answer {
	b, err := read[struct {
		CrewID  string `json:"crewId"`
		Content string `json:"content"`
		Text    string `json:"text"`
	}](r.Body)
	text := b.Content + b.Text
	if err != nil || strings.TrimSpace(text) == "" || b.Content != "" && b.Text != "" || len(text) > maxText {
		return badBody(errBody)
	}
	return h.toGroup(r, b.CrewID, crewbody.GroupSay{Text: text})
}

// react adds a person's reaction to a message of a group.
func (h *Handler) react(r *request) answer {
	b, err := read[struct {
		CrewID string `json:"crewId"`
		Emoji  string `json:"emoji"`
	}](r.Body)
	if err != nil || !usable(b.Emoji) || len(b.Emoji) > 64 {
		return badBody(errBody)
	}
	return h.toGroup(r, b.CrewID, crewbody.GroupSay{MessageID: r.Parts[1], Emoji: b.Emoji})
}

// unreact removes a person's reaction.
func (h *Handler) unreact(r *request) answer {
	if !usable(r.Parts[2]) || len(r.Parts[2]) > 64 {
		return badBody(errBody)
	}
	return h.toGroup(r, "", crewbody.GroupSay{MessageID: r.Parts[1], Emoji: r.Parts[2], Remove: true})
}

func (h *Handler) toGroup(r *request, named string, say crewbody.GroupSay) answer {
	say.Group, say.By = r.Parts[0], nameOf(r.Caller)
	crew, rejection, ok := h.group(r, say.Group, named)
	if !ok {
		return rejection
	}
	id, err := inputID(r, h.topics.Agent)
	if err != nil {
		return badBody(err)
	}
	if rejection, ok := h.mayWrite(r); !ok {
		return rejection
	}
	return h.send(r, h.topics.CrewInputs, crew, id, say, "crewId", crew, "group", say.Group)
}
