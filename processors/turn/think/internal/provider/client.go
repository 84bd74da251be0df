// Package provider is what the model adapters share: their settings and HTTP client, timeouts, errors that quote nothing, the
// conversation in a form that their providers accept, and what counts as a reply.
package provider

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/processors/turn/think/internal/toolcall"
	"github.com/turntable-streams/turntable/topics"
)

const defaultSilence = 5 * time.Minute

// Client makes the requests of an adapter.
type Client struct {
	Settings think.Settings
	// HTTP is the client for the provider's SDK. It measures responses for Client, so their requests must have the context
	// that an attempt gets.
	HTTP *http.Client

	name     string
	origin   string // of the provider's state
	classify Classify
	rules    Rules
	names    *Names // of the tools
	lately   *lately
}

// Classify reads an error of the provider's SDK. ok is false if it is not an error response.
type Classify func(err error) (e Response, ok bool)

// Response is an error response, as the SDK decodes it.
type Response struct {
	// Status is the HTTP status; for an error in a stream, the one that its type stands for.
	Status  int
	Type    string
	Request string
	After   time.Duration
	// Final reports that the request is not worth repeating, whatever the status says.
	Final bool
}

// New checks settings, fills in their defaults and returns a client. prices are the adapter's own. The tools of its settings
// have the names that are sent.
func New(name string, s think.Settings, prices think.Prices, rules Rules, classify Classify) (*Client, error) {
	switch {
	case strings.TrimSpace(s.Key) == "":
		return nil, fmt.Errorf("%w: %s: Key is blank", think.ErrSettings, name)
	case strings.ContainsFunc(s.Key, unicode.IsControl): // a header cannot have it: every request would fail
		return nil, fmt.Errorf("%w: %s: Key has a line break or another control character", think.ErrSettings, name)
	case strings.TrimSpace(s.Model) == "":
		return nil, fmt.Errorf("%w: %s: Model is blank", think.ErrSettings, name)
	case s.MaxTokens < 0 || s.Silence < 0:
		return nil, fmt.Errorf("%w: %s: MaxTokens and Silence must not be negative", think.ErrSettings, name)
	}
	for _, t := range s.Tools {
		schema := jsontext.Value(toolcall.WellFormed(t.InputSchema))
		if strings.TrimSpace(t.Name) == "" || schema.Kind() != '{' || !schema.IsValid() {
			return nil, fmt.Errorf("%w: %s: tool %q: the name is blank or the schema is not an object",
				think.ErrSettings, name, t.Name)
		}
	}
	if s.Silence == 0 {
		s.Silence = defaultSilence
	}
	if s.Prices == nil {
		s.Prices = prices
	}
	names := namesOf(rules, s.Tools)
	s.Tools = slices.Clone(s.Tools)
	for i, t := range s.Tools {
		s.Tools[i].Name, s.Tools[i].InputSchema = names.Sent(t.Name), toolcall.WellFormed(t.InputSchema)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	return &Client{Settings: s, name: name, origin: originOf(name, s), classify: classify, rules: rules, names: names, lately: newLately(), HTTP: &http.Client{
		Transport: measured{transport},
		// A redirect would send the key to another address.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// originOf names a provider: the adapter, and the host of another server with its API.
func originOf(name string, s think.Settings) string {
	if u, err := url.Parse(s.BaseURL); err == nil && u.Hostname() != "" {
		return name + " " + u.Hostname()
	}
	return name
}

// Close closes idle connections.
func (c *Client) Close() { c.HTTP.CloseIdleConnections() }

// Attempt makes one request and adds the provider's answer to the reply. It returns nil at its end, or if the reply is stopped.
type Attempt func(ctx context.Context, messages []Message, r *Reply) error

// Stream makes one attempt and yields the pieces of its reply, and then its error. The worker makes further attempts.
func (c *Client) Stream(ctx context.Context, s think.Step, attempt Attempt) iter.Seq2[think.Delta, error] {
	return func(yield func(think.Delta, error) bool) {
		messages, names, err := c.Conversation(s)
		if err != nil {
			yield(think.Delta{}, err)
			return
		}
		r := &Reply{
			Names: names, session: s.SessionID, ids: toolcall.New(s.Key, s.Messages),
			yield: func(d think.Delta) bool { return yield(d, nil) },
		}
		err = c.try(ctx, func(ctx context.Context) error { return attempt(ctx, messages, r) })
		if err == nil && !r.said && r.Calls == 0 {
			err = think.ErrEmpty
		}
		if !r.Stopped && err != nil {
			yield(think.Delta{}, err)
		}
	}
}

// State yields the state of the provider that the next step of the conversation has to return: JSON.
func (c *Client) State(r *Reply, data topics.Raw) {
	c.lately.keep(r.session, r.called, data)
	r.Yield(think.Delta{State: &think.State{Provider: c.origin, Model: c.Settings.Model, Data: data}})
}

// try makes one attempt. Its context ends if the provider is silent for too long.
func (c *Client) try(ctx context.Context, attempt func(context.Context) error) error {
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(c.Settings.Silence, func() { cancel(think.ErrTimeout) })
	defer silence.Stop()
	o := &observed{touch: func() { silence.Reset(c.Settings.Silence) }}
	err := attempt(context.WithValue(inner, observedKey{}, o))
	if err == nil {
		return nil
	}
	return c.failure(ctx, inner, o, err)
}

// IdempotencyKey returns the key of a step's requests. It is the same for every attempt and every repeat of the step, except
// that a provider must not answer with the empty reply again.
func IdempotencyKey(s think.Step) string {
	if s.Again {
		return toolcall.Digest("step", s.Agent, s.SessionID, s.Key, "again")
	}
	return toolcall.Digest("step", s.Agent, s.SessionID, s.Key)
}

// SessionKey returns a name of the step's session that does not tell the session.
func SessionKey(s think.Step) string { return toolcall.Digest("session", s.Agent, s.SessionID) }

// System returns the sections of the system prompt that are not blank, in their order: the configured prompt, which is the
// same for every step and is reported by fixed, the user's memoir, and the ephemeral prompt of the turn.
func (c *Client) System(s think.Step) (sections []string, fixed bool) {
	if strings.TrimSpace(c.Settings.System) != "" {
		sections, fixed = append(sections, c.Settings.System), true
	}
	if strings.TrimSpace(s.Memoir) != "" {
		sections = append(sections, "What you know of the user from earlier sessions:\n"+s.Memoir)
	}
	if strings.TrimSpace(s.EphemeralPrompt) != "" {
		sections = append(sections, s.EphemeralPrompt)
	}
	return sections, fixed
}

// Usage returns the usage of a call with its cost.
func (c *Client) Usage(t think.Tokens) *think.Usage {
	return &think.Usage{InputTokens: t.Prompt(), OutputTokens: t.Output, Cost: c.Settings.Prices.Cost(c.Settings.Model, t)}
}
