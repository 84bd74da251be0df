package crewhttp

import (
	"cmp"
	"encoding/base64"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
	"github.com/turntable-streams/turntable/processors/internal/entrance"
	"github.com/turntable-streams/turntable/topics"
)

const (
	maxAttachments = 10
	// maxAttachment is the length of an attachment in base64. The body limit and that of a record are usually lower.
	maxAttachment = 14_000_000
	// The modes of a message; no mode is modeQueue.
	modeQueue, modeInterrupt = "queue", "interrupt"
)

var (
	errMessage    = errors.New("body is not an object with a text that is not empty, and optionally mode (queue or interrupt) and attachments")
	errAttachment = errors.New("attachments are not at most 10 images (png, jpeg, gif or webp) in base64, each of at most 14,000,000 characters")
)

// attachment is an image.
type attachment struct {
	Type     string `json:"type"` // "image", a MIME type, or empty
	Name     string `json:"name"`
	MimeType string `json:"mimeType"`
	Data     string `json:"data"`
}

// sent is the body of a message of a person.
type sent struct {
	Text        string       `json:"text"`
	Mode        string       `json:"mode"`
	Attachments []attachment `json:"attachments"`
}

// block is a content block of ACP.
type block struct {
	Type     string `json:"type"`
	MimeType string `json:"mimeType"`
	Data     string `json:"data"`
}

// readMessage reads the message of a request. With mode "interrupt" the message does what the request to interrupt an agent does, and
// needs its right.
func readMessage(r *request) (m sent, blocks topics.Raw, rejection answer, ok bool) {
	m, blocks, err := messageOf(r.Body)
	switch {
	case err != nil:
		return m, nil, badBody(err), false
	case m.Mode == modeInterrupt && !r.Caller.Can(auth.Control):
		return m, nil, forbidden(r, "Forbidden: mode interrupt needs the right control"), false
	}
	return m, blocks, answer{}, true
}

func messageOf(body []byte) (m sent, blocks topics.Raw, err error) {
	m, err = read[sent](body)
	switch {
	case err != nil:
		return m, nil, err
	case strings.TrimSpace(m.Text) == "" || len(m.Text) > maxText || m.Mode != "" && m.Mode != modeQueue && m.Mode != modeInterrupt:
		return m, nil, errMessage
	case len(m.Attachments) > maxAttachments:
		return m, nil, errAttachment
	}
	var images []block
	for _, a := range m.Attachments {
		mime := cmp.Or(a.MimeType, a.Type)
		data := a.Data
		if _, after, ok := strings.Cut(data, ";base64,"); ok && strings.HasPrefix(data, "data:") {
			data = after
		}
		switch mime {
		case "image/png", "image/jpeg", "image/gif", "image/webp":
		default:
			return m, nil, errAttachment
		}
		if _, err := base64.StdEncoding.DecodeString(data); err != nil || data == "" || len(data) > maxAttachment {
			return m, nil, errAttachment
		}
		images = append(images, block{"image", mime, data})
	}
	if len(images) > 0 {
		blocks = entrance.JSON(images)
	}
	return m, blocks, nil
}

// message sends a person's message to an agent and to the agents that it mentions.
func (h *Handler) message(r *request) answer {
	m, blocks, rejection, ok := readMessage(r)
	if !ok {
		return rejection
	}
	return h.told(r, m.say(r, r.Parts[0], blocks))
}

// say is the message as an input: to an agent, or to all with everyone.
func (m sent) say(r *request, to string, blocks topics.Raw) crewbody.Say {
	return crewbody.Say{To: to, Text: m.Text, Interrupt: m.Mode == modeInterrupt, Blocks: blocks, By: nameOf(r.Caller)}
}

// broadcast sends a person's message to all running agents of a crew and to the agents that it mentions.
func (h *Handler) broadcast(r *request) answer {
	m, blocks, rejection, ok := readMessage(r)
	if !ok {
		return rejection
	}
	crew := r.Parts[0]
	if rejection, ok := h.crew(r, crew); !ok {
		return rejection
	}
	known := func() bool { return len(h.index.crewsOf(r.Caller, crew)) > 0 }
	if err := h.index.look(r.Context(), r.Caller, only(mailbox.Crew(crew)), known); err != nil {
		return notReady()
	}
	if !known() {
		return entrance.Failed(http.StatusNotFound, "Unknown crew")
	}
	id := h.inputID(r)
	if rejection, ok := h.mayWrite(r); !ok {
		return rejection
	}
	return h.send(r, h.topics.CrewInputs, crew, id, m.say(r, everyone, blocks), "crewId", crew)
}

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
	id := h.inputID(r)
	if rejection, ok := h.mayWrite(r); !ok {
		return rejection
	}
	return h.send(r, h.topics.CrewInputs, crew, id, say, "crewId", crew, "group", say.Group)
}
