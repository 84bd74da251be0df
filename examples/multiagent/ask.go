package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"

	"github.com/go-json-experiment/json"
)

// chatBody is the request body of the chat door.
type chatBody struct {
	SessionID string `json:"session_id"`
	Content   string `json:"content"`
	RequestID string `json:"request_id"`
}

// post posts a question to a chat door: with curl, or with an HTTP client if curl is not installed.
func post(ctx context.Context, chat, session, request, question string, p *screen) error {
	body, err := json.Marshal(chatBody{session, question, request})
	if err != nil {
		return errors.New("the question is not valid UTF-8")
	}
	p.note("question", "curl -d '%s' %s", body, chat)
	answer, err := ask(ctx, chat, string(body))
	if err != nil {
		return fmt.Errorf("the question was not accepted: %w", err)
	}
	p.note("taken", "%s", answer)
	return nil
}

// ask posts a body with curl and returns the response.
func ask(ctx context.Context, chat, body string) (answer string, err error) {
	curl, err := exec.LookPath("curl")
	if err != nil {
		return askWithoutCurl(ctx, chat, body)
	}
	cmd := exec.CommandContext(ctx, curl, "--silent", "--show-error", "--fail-with-body", "--noproxy", "*",
		"--header", "Content-Type: application/json", "--data-binary", "@-", chat)
	cmd.Stdin = strings.NewReader(body)
	out, err := cmd.Output()
	return strings.TrimSpace(string(out)), err
}

func askWithoutCurl(ctx context.Context, chat, body string) (answer string, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, chat, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	r.Header.Set("Content-Type", "application/json")
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	response, err := client.Do(r)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	raw, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err == nil && response.StatusCode != http.StatusOK {
		err = errors.New(response.Status)
	}
	return string(raw), err
}
