package mattermost

import (
	"context"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/internal/platform"
)

// newPost are the parameters of https://developers.mattermost.com/api-documentation/#/operations/CreatePost.
type newPost struct {
	Channel string `json:"channel_id"`
	Message string `json:"message"`
	Root    string `json:"root_id,omitzero"`
	Pending string `json:"pending_post_id"`
	Props   *props `json:"props,omitzero"`
}

type props struct {
	Attachments []attachment `json:"attachments"`
}

// attachment has the buttons of a post (https://developers.mattermost.com/integrate/plugins/interactive-messages/).
type attachment struct {
	Actions []action `json:"actions"`
}

type action struct {
	ID          string      `json:"id"`
	Type        string      `json:"type"`
	Name        string      `json:"name"`
	Style       string      `json:"style"`
	Integration integration `json:"integration"`
}

type integration struct {
	URL     string  `json:"url"`
	Context pressed `json:"context"`
}

// Send implements adapter.Adapter. The text cannot notify a whole channel; persons are notified if it has their names. A channel that does not exist or that the bot must not write to is a final failure.
func (a *Adapter) Send(ctx context.Context, c adapter.Chunk) (adapter.Sent, error) {
	p := newPost{Channel: c.To.Recipient, Message: withoutBroadcast(c.Text), Root: c.To.Thread, Pending: pendingID(c.Key)}
	if c.Ask != nil && a.config.CallbackURL != "" {
		p.Props = &props{Attachments: []attachment{{Actions: []action{
			a.button("approve", "Approve", "good", true, c), a.button("deny", "Deny", "danger", false, c),
		}}}}
	}
	answer, err := a.call(ctx, http.MethodPost, "/posts", p)
	return adapter.Sent{ID: adapter.Code(answer.ID())}, err
}

// broadcast matches what notifies all members of a channel, also with the "@" as an entity
// (https://docs.mattermost.com/end-user-guide/collaborate/mention-people.html).
var broadcast = regexp.MustCompile(`(?i)(^|[^\pL\pN])(?:@|&#0*64;|&#x0*40;|&commat;)(all|channel|here)`)

// withoutBroadcast returns a text that notifies no channel: models repeat what strangers wrote. The "@" becomes a full-width one, so
// the text does not get longer.
func withoutBroadcast(s string) string { return broadcast.ReplaceAllString(s, "${1}＠${2}") }

// pendingID returns an ID that differs for different keys.
func pendingID(key string) string {
	return "turntable:" + platform.HashKey(key)[:32]
}

// failure returns the failure of an answer, nil if it succeeded. Errors have an ID from a list
// (https://developers.mattermost.com/api-documentation/#error-handling).
func (a *Adapter) failure(answer platform.Answer) *adapter.Failure {
	f := platform.StatusFailure(answer.Status, answer.Header, a.config.Clock.Now())
	if f == nil {
		return nil
	}
	id := answer.ID()
	if !strings.HasSuffix(id, ".app_error") {
		id = ""
	}
	platform.Explain(f, id)
	if f.Status == http.StatusTooManyRequests && f.RetryAfter == 0 {
		// The header has the seconds until the limit is reset (https://developers.mattermost.com/api-documentation/#rate-limiting).
		if wait := platform.RetryAfter(answer.Header.Get("X-Ratelimit-Reset"), a.config.Clock.Now()); wait <= time.Hour {
			f.RetryAfter = wait
		}
	}
	return f
}
