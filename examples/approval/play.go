package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// scene is one payment and what the person does about it.
type scene struct {
	title    string
	session  string
	content  string
	decision map[string]any // nil: no one answers
}

// scenes are the four payments.
func scenes() []scene {
	return []scene{
		{"A person approves", "approve", "Pay 12.50 to mira.", map[string]any{"verdict": "approve"}},
		{
			"A person denies", "deny", "Pay 99.00 to otto.",
			map[string]any{"verdict": "deny", "reason": "Otto was paid yesterday."},
		},
		{
			"A person approves another amount", "edit", "Pay 80.00 to ines.",
			map[string]any{"verdict": "approve", "edited_args": payment{To: "ines", Cents: 4000}},
		},
		{"No one answers", "expiry", "Pay 5.00 to noor.", nil},
	}
}

// openGate is what the example reads of GET /api/gates.
type openGate struct {
	ID         string         `json:"gate_id"`
	Tool       string         `json:"tool"`
	Args       jsontext.Value `json:"args"`
	ArgsSHA256 string         `json:"args_sha256"`
	Message    string         `json:"message"`
	Status     string         `json:"status"`
	ExpiresAt  string         `json:"expires_at"`
}

// client is a person with an HTTP client.
type client struct {
	base   string
	http   *http.Client
	screen *screen
}

// play plays one payment: it sends the message, waits for the gate, decides, and waits for the answer.
func (c client) play(ctx context.Context, s scene, answers *answers) error {
	c.screen.title(s.title)
	answer := answers.of(s.session)
	c.screen.line("user", "%s", s.content)
	chat := map[string]any{"session_id": s.session, "content": s.content}
	if err := c.do(ctx, http.MethodPost, "/api/chat", chat, nil); err != nil {
		return err
	}
	g, err := c.open(ctx, s.session)
	if err != nil {
		return err
	}
	c.screen.line("gate", "%s %s %s", g.Message, g.Tool, g.Args)
	if s.decision == nil {
		c.screen.line("person", "is not there; the gate closes at %s", g.ExpiresAt)
	} else {
		s.decision["args_sha256"] = g.ArgsSHA256 // what is approved is what was shown
		c.screen.line("person", "decides: %v", s.decision["verdict"])
		if err := c.do(ctx, http.MethodPost, "/api/gates/"+url.PathEscape(g.ID)+"/decision", s.decision, nil); err != nil {
			return err
		}
	}
	select {
	case text := <-answer:
		c.screen.line("agent", "%s", text)
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// open returns the open gate of a session, once there is one. The answer to each request waits for a change.
func (c client) open(ctx context.Context, session string) (openGate, error) {
	for {
		var list struct {
			Gates []openGate `json:"gates"`
		}
		path := "/api/gates?status=pending&wait=20s&session_id=" + url.QueryEscape(session)
		if err := c.do(ctx, http.MethodGet, path, nil, &list); err != nil {
			return openGate{}, err
		}
		if len(list.Gates) > 0 {
			return list.Gates[0], nil
		}
	}
}

// do sends a request and decodes the answer into to, unless it is nil.
func (c client) do(ctx context.Context, method, path string, body, to any) error {
	var content io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return err
		}
		content = bytes.NewReader(encoded)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.base+path, content)
	if err != nil {
		return err
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := c.http.Do(request)
	if err != nil {
		return err
	}
	answer, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return err
	}
	if response.StatusCode/100 != 2 {
		return fmt.Errorf("%s %s: %s: %s", method, path, response.Status, bytes.TrimSpace(answer))
	}
	if to == nil {
		return nil
	}
	return json.Unmarshal(answer, to)
}

// explain prints how to play on with curl.
func (c client) explain() {
	c.screen.title("The agent keeps running. In another terminal:")
	for _, line := range []string{
		`curl -s ` + c.base + `/api/chat -d '{"session_id":"mine","content":"Pay 20.00 to mira."}'`,
		`curl -s '` + c.base + `/api/gates?session_id=mine&status=pending'`,
		`curl -s ` + c.base + `/api/gates/GATE_ID/decision -d '{"verdict":"approve"}'`,
	} {
		c.screen.line("", "%s", line)
	}
}
