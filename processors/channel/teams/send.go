package teams

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/internal/platform"
	"github.com/turntable-streams/turntable/processors/channel/text"
)

const (
	// maxGate is the longest ID of a gate or an activity in bytes.
	maxGate = 256
)

// outbound is an activity that the bot sends. The Bot Framework has no idempotency key for it, so an attempt whose response was lost
// can post it twice.
type outbound struct {
	Type        string       `json:"type"`
	Text        string       `json:"text"`
	TextFormat  string       `json:"textFormat"`
	ReplyToID   string       `json:"replyToId,omitempty"`
	Attachments []attachment `json:"attachments,omitempty"`
}

type attachment struct {
	ContentType string `json:"contentType"`
	Content     card   `json:"content"`
}

// card is an Adaptive Card, https://adaptivecards.io/explorer/AdaptiveCard.html.
type card struct {
	Type    string    `json:"type"`
	Version string    `json:"version"`
	Body    []element `json:"body"`
	Actions []button  `json:"actions"`
}

type element struct {
	Type string `json:"type"`
	Text string `json:"text"`
	Wrap bool   `json:"wrap"`
}

type button struct {
	Type  string `json:"type"`
	Title string `json:"title"`
	Data  struct {
		Choice choice `json:"turntable_gate"`
	} `json:"data"`
}

// Send implements adapter.Adapter. It sends to the service URL of the origin if that is configured, and to no other.
func (a *Adapter) Send(ctx context.Context, c adapter.Chunk) (adapter.Sent, error) {
	var to reply
	if c.To.Adapter == nil || json.Unmarshal(c.To.Adapter, &to) != nil || to.ServiceURL == "" {
		return adapter.Sent{}, &adapter.Failure{Reason: "no service URL", Final: true}
	}
	service, ok := a.allowed(to.ServiceURL)
	if !ok {
		return adapter.Sent{}, &adapter.Failure{Reason: "service URL is not configured", Final: true}
	}
	token, failure := a.tokens.get(ctx)
	if failure != nil {
		return adapter.Sent{}, failure
	}
	answer, err := platform.Do(ctx, a.client, http.MethodPost, target(service, to, c), token, activityOf(c))
	if answer.Status == 0 { // else the status is the result
		return adapter.Sent{}, err
	}
	if f := platform.StatusFailure(answer.Status, answer.Header, a.now()); f != nil {
		return adapter.Sent{}, a.refused(f, token, answer.Body)
	}
	sent := adapter.Sent{ID: answer.ID()}
	if len(sent.ID) > maxGate {
		sent.ID = ""
	}
	return sent, nil
}

// refused adds the connector's error code to a failure.
func (a *Adapter) refused(f *adapter.Failure, token string, answer []byte) *adapter.Failure {
	switch f.Status {
	case http.StatusUnauthorized:
		a.tokens.forget(token)
	case http.StatusPreconditionFailed: // Teams asks to retry it
		f.Final = false
	}
	var body struct {
		Error struct {
			Code string `json:"code"`
		} `json:"error"`
	}
	if json.Unmarshal(answer, &body) == nil {
		if code := adapter.Code(body.Error.Code); code != "" {
			f.Reason += " " + code
		}
	}
	return f
}

// target is the URL for a chunk: a reply to the message of the origin, or an activity of the conversation.
func target(service *url.URL, to reply, c adapter.Chunk) string {
	conversation := c.To.Recipient
	if to.Channel && c.To.Thread != "" {
		conversation += threadMark + c.To.Thread
	}
	address := strings.TrimRight(service.String(), "/") + "/v3/conversations/" + url.PathEscape(conversation) + "/activities"
	if c.To.MessageID != "" {
		address += "/" + url.PathEscape(c.To.MessageID)
	}
	return address
}

func activityOf(c adapter.Chunk) outbound {
	o := outbound{Type: "message", Text: c.Text, TextFormat: "markdown", ReplyToID: c.To.MessageID}
	if c.Format == text.Plain {
		o.TextFormat = "plain"
	}
	if c.Ask == nil || len(c.Ask.GateID) > maxGate {
		return o // the text of a request for approval says how to answer without buttons
	}
	press := func(title string, approve bool) button {
		b := button{Type: "Action.Submit", Title: title}
		b.Data.Choice = choice{GateID: c.Ask.GateID, Approve: &approve}
		return b
	}
	o.Attachments = []attachment{{
		ContentType: "application/vnd.microsoft.card.adaptive",
		Content: card{
			Type: "AdaptiveCard", Version: "1.2",
			Body:    []element{{Type: "TextBlock", Text: title(c.Ask.Tool), Wrap: true}},
			Actions: []button{press("Approve", true), press("Deny", false)},
		},
	}}
	return o
}

// title is the text of the card. A card's text is Markdown, so the name of the tool is only its plain characters.
func title(tool string) string {
	if tool = adapter.Code(tool); tool == "" {
		return "Approve?"
	}
	return "Approve " + strings.ReplaceAll(tool, "_", "\\_") + "?"
}
