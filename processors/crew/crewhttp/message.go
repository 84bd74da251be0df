package crewhttp

import (
	"encoding/base64"
	"errors"
	"net/http"
	"strings"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
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

func readMessage(body []byte) (m sent, blocks topics.Raw, err error) {
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
		mime := a.MimeType
		if mime == "" {
			mime = a.Type
		}
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

// mayInterrupt checks that the caller of a message that interrupts may do so: with mode "interrupt" it does what the request to
// interrupt an agent does.
func mayInterrupt(r *request, m sent) (rejection answer, ok bool) {
	if m.Mode == modeInterrupt && !r.Caller.Can(auth.Control) {
		return forbidden(r, "Forbidden: mode interrupt needs the right control"), false
	}
	return answer{}, true
}

// message sends a person's message to an agent and to the agents that it mentions.
func (h *Handler) message(r *request) answer {
	m, blocks, err := readMessage(r.Body)
	if err != nil {
		return badBody(err)
	}
	if rejection, ok := mayInterrupt(r, m); !ok {
		return rejection
	}
	return h.told(r, true, func(row *agentRow) (crewbody.Body, answer, bool) {
		if rejection, ok := h.mayTell(r, row); !ok {
			return nil, rejection, false
		}
		return crewbody.Say{
			To: row.view.ID, Text: m.Text, Interrupt: m.Mode == modeInterrupt, Blocks: blocks, By: nameOf(r.Caller),
		}, answer{}, true
	})
}

// broadcast sends a person's message to all running agents of a crew and to the agents that it mentions.
func (h *Handler) broadcast(r *request) answer {
	m, blocks, err := readMessage(r.Body)
	if err != nil {
		return badBody(err)
	}
	if rejection, ok := mayInterrupt(r, m); !ok {
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
	id, err := inputID(r, h.topics.Agent)
	if err != nil {
		return badBody(err)
	}
	if rejection, ok := h.mayWrite(r); !ok {
		return rejection
	}
	return h.send(r, h.topics.CrewInputs, crew, id, crewbody.Say{
		To: "*", Text: m.Text, Interrupt: m.Mode == modeInterrupt, Blocks: blocks, By: nameOf(r.Caller),
	}, "crewId", crew)
}
