// Package provider is what the model adapters share: their settings and HTTP client, timeouts, and errors that quote
// nothing.
package provider

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/processors/turn/think"
)

const defaultSilence = 5 * time.Minute

// Client makes the requests of an adapter.
type Client struct {
	Settings think.Settings
	// HTTP is the client for the provider's SDK. It measures responses for Client, so their requests must have the context
	// that an attempt gets.
	HTTP *http.Client

	name     string
	classify Classify
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

// New checks settings, fills in their defaults and returns a client. prices are the adapter's own.
func New(name string, s think.Settings, prices think.Prices, classify Classify) (*Client, error) {
	switch {
	case strings.TrimSpace(s.Key) == "":
		return nil, fmt.Errorf("%w: %s: Key is blank", think.ErrSettings, name)
	case strings.TrimSpace(s.Model) == "":
		return nil, fmt.Errorf("%w: %s: Model is blank", think.ErrSettings, name)
	case s.MaxTokens < 0 || s.Silence < 0:
		return nil, fmt.Errorf("%w: %s: MaxTokens and Silence must not be negative", think.ErrSettings, name)
	}
	for _, t := range s.Tools {
		schema := jsontext.Value(t.InputSchema)
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
	transport := http.DefaultTransport.(*http.Transport).Clone()
	return &Client{Settings: s, name: name, classify: classify, HTTP: &http.Client{
		Transport: measured{transport},
		// A redirect would send the key to another address.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// Close closes idle connections.
func (c *Client) Close() { c.HTTP.CloseIdleConnections() }

// Attempt makes one request and yields the pieces of the reply. It returns nil after the last piece, or if yield returned
// false.
type Attempt func(ctx context.Context, yield func(think.Delta) bool) error

// Stream makes one attempt and yields the pieces of its reply, and then its error. The worker makes further attempts.
func (c *Client) Stream(ctx context.Context, attempt Attempt) iter.Seq2[think.Delta, error] {
	return func(yield func(think.Delta, error) bool) {
		stopped := false
		err := c.try(ctx, attempt, func(d think.Delta) bool {
			stopped = !yield(d, nil)
			return !stopped
		})
		if !stopped && err != nil {
			yield(think.Delta{}, err)
		}
	}
}

// try makes one attempt. Its context ends if the provider is silent for too long.
func (c *Client) try(ctx context.Context, attempt Attempt, yield func(think.Delta) bool) error {
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(c.Settings.Silence, func() { cancel(think.ErrTimeout) })
	defer silence.Stop()
	o := &observed{touch: func() { silence.Reset(c.Settings.Silence) }}
	err := attempt(context.WithValue(inner, observedKey{}, o), yield)
	if err == nil {
		return nil
	}
	return c.failure(ctx, inner, o, err)
}

// IdempotencyKey returns the key of a step's requests. It is the same for every attempt and every repeat of the step.
func IdempotencyKey(s think.Step) string { return digest("step", s.Agent, s.SessionID, s.Key) }

// SessionKey returns a name of the step's session that does not tell the session.
func SessionKey(s think.Step) string { return digest("session", s.Agent, s.SessionID) }

// CallID returns the ID of a step's i-th call, for providers that give calls none.
func CallID(s think.Step, i int) string {
	return fmt.Sprintf("call_%s_%d", digest("call", s.Agent, s.SessionID, s.Key)[:24], i)
}

func digest(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil)[:20])
}

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
