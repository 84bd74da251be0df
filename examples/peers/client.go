package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/go-json-experiment/json"

	"github.com/turntable-streams/turntable/processors/peer/peerhttp"
	"github.com/turntable-streams/turntable/processors/turn/turnhttp"
)

// client is a person with an HTTP client.
type client struct {
	http *http.Client
	key  string // for the chat doors and the proxies
}

// ask sends a message to the agent of an instance.
func (c client) ask(ctx context.Context, m *member, session, content string) error {
	body, err := json.Marshal(map[string]string{"session_id": session, "content": content})
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, m.url()+turnhttp.ChatPath, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+c.key)
	_, err = c.do(request)
	return err
}

// card is what an instance says of itself.
type card struct {
	InstanceID   string `json:"instanceId"`
	InstanceName string `json:"instanceName"`
	Agents       []struct {
		ID string `json:"id"`
	} `json:"agents"`
	Capabilities struct {
		Delegate   bool `json:"delegate"`
		Idempotent bool `json:"idempotent"`
		Async      bool `json:"async"`
		Cancel     bool `json:"cancel"`
	} `json:"capabilities"`
}

// card returns the card of an instance. It needs no key.
func (c client) card(ctx context.Context, m *member) (of card, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, m.url()+peerhttp.CardPath, nil)
	if err != nil {
		return of, err
	}
	body, err := c.do(request)
	if err != nil {
		return of, err
	}
	return of, json.Unmarshal(body, &of)
}

// do sends a request and returns the body of the response.
func (c client) do(request *http.Request) ([]byte, error) {
	response, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return nil, err
	}
	if response.StatusCode/100 != 2 {
		return nil, fmt.Errorf("%s %s: %s: %s", request.Method, request.URL.Path, response.Status, bytes.TrimSpace(body))
	}
	return body, nil
}
