package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"

	"github.com/go-json-experiment/json"
)

// person does what a person does in a browser: HTTP requests to the door.
type person struct {
	url   string // of the door
	token string
	crew  string
}

// answered is what the door answers.
type answered struct {
	ID    string `json:"id"`
	Error string `json:"error"`
}

// post sends a request. It has an Idempotency-Key of its own, so that it could be repeated.
func (p person) post(ctx context.Context, path string, body map[string]any) (a answered, err error) {
	raw, err := json.Marshal(body)
	if err != nil {
		return a, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url+"/api"+path, bytes.NewReader(raw))
	if err != nil {
		return a, err
	}
	r.Header.Set("Authorization", "Bearer "+p.token)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", newID())
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return a, err
	}
	defer func() { _ = response.Body.Close() }()
	if raw, err = io.ReadAll(io.LimitReader(response.Body, 1<<20)); err != nil {
		return a, err
	}
	if err := json.Unmarshal(raw, &a); err != nil {
		return a, fmt.Errorf("POST %s: %w", path, err)
	}
	if response.StatusCode/100 != 2 {
		return a, fmt.Errorf("POST %s: %s: %s", path, response.Status, a.Error)
	}
	return a, nil
}

// configure says where the crew works.
func (p person) configure(ctx context.Context, host, dir, repository string) error {
	_, err := p.post(ctx, "/crews", map[string]any{
		"crewId": p.crew, "projectName": "scratch", "host": host, "cwd": dir, "repository": repository,
	})
	return err
}

// spawn starts an agent and returns its ID.
func (p person) spawn(ctx context.Context, role, task string) (string, error) {
	a, err := p.post(ctx, "/agents", map[string]any{"crewId": p.crew, "roleId": role, "task": task})
	return a.ID, err
}

// say writes a message to an agent.
func (p person) say(ctx context.Context, agentID, text string) error {
	_, err := p.post(ctx, "/agents/"+agentID+"/message", map[string]any{"text": text})
	return err
}

// decide answers a permission request of an agent.
func (p person) decide(ctx context.Context, agentID, requestID string, allow bool) error {
	_, err := p.post(ctx, "/agents/"+agentID+"/permission", map[string]any{"approved": allow, "requestId": requestID})
	return err
}

// whole returns a permission request of which events show the beginning.
func (p person) whole(ctx context.Context, agentID, requestID string) (string, error) {
	path := "/agents/" + agentID + "/permissions/" + requestID
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+"/api"+path, http.NoBody)
	if err != nil {
		return "", err
	}
	r.Header.Set("Authorization", "Bearer "+p.token)
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	raw, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s: %s", path, response.Status)
	}
	return string(raw), err
}

func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	return hex.EncodeToString(b[:])
}
