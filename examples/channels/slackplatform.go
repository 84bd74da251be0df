package main

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
)

// slackPlatform plays Slack: it takes chat.postMessage, and sends signed events and pressed buttons to the app.
type slackPlatform struct {
	server        *httptest.Server
	token, secret string
	inbox         *inbox
	mu            sync.Mutex
	events        int
	now           func() time.Time
}

func newSlackPlatform(i *inbox) *slackPlatform {
	p := &slackPlatform{token: "xoxb-example", secret: "example-signing-secret", inbox: i, now: time.Now}
	p.server = httptest.NewServer(p)
	return p
}

// slackBlock is what the example reads of a block of buttons.
type slackBlock struct {
	Type     string `json:"type"`
	BlockID  string `json:"block_id"`
	Elements []struct {
		ActionID string `json:"action_id"`
		Value    string `json:"value"`
	} `json:"elements"`
}

// ServeHTTP is Slack's Web API (https://docs.slack.dev/reference/methods/chat.postMessage).
func (p *slackPlatform) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	refuse := func(code string) { _, _ = fmt.Fprintf(w, `{"ok":false,"error":%q}`, code) }
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Path != "/api/chat.postMessage" {
		refuse("unknown_method")
		return
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil {
		return
	}
	token := r.Header.Get("Authorization")
	message := struct {
		Channel  string       `json:"channel"`
		Text     string       `json:"text"`
		ThreadTS string       `json:"thread_ts"`
		Blocks   []slackBlock `json:"blocks"`
	}{}
	if form, err := url.ParseQuery(string(body)); err == nil && form.Has("channel") {
		message.Channel, message.Text, message.ThreadTS = form.Get("channel"), form.Get("text"), form.Get("thread_ts")
		if blocks := form.Get("blocks"); blocks != "" {
			_ = json.Unmarshal([]byte(blocks), &message.Blocks)
		}
		if form.Has("token") {
			token = "Bearer " + form.Get("token")
		}
	} else if err := json.Unmarshal(body, &message); err != nil {
		refuse("invalid_json")
		return
	}
	if token != "Bearer "+p.token {
		refuse("invalid_auth")
		return
	}
	place := "Slack " + message.Channel
	if message.ThreadTS != "" {
		place += ", thread " + message.ThreadTS
	}
	p.inbox.add(letter{place: place, text: message.Text, blocks: message.Blocks})
	_, _ = fmt.Fprintf(w, `{"ok":true,"channel":%q,"ts":"%d.000100"}`, message.Channel, p.now().UnixNano())
}

// write sends what a user writes to the app, at the address of its events. thread is empty outside of one.
func (p *slackPlatform) write(ctx context.Context, app, user, channel, thread, text string) error {
	p.mu.Lock()
	p.events++
	n := p.events
	p.mu.Unlock()
	event := map[string]any{
		"type": "message", "channel": channel, "user": user, "text": text, "ts": fmt.Sprintf("17000000%02d.000200", n),
		"channel_type": "im",
	}
	if channel[0] == 'C' {
		event["type"], event["channel_type"] = "app_mention", "channel"
		event["text"] = "<@UBOT> " + text
	}
	if thread != "" {
		event["thread_ts"] = thread
	}
	body, err := json.Marshal(map[string]any{
		"type": "event_callback", "team_id": "T1", "event_id": "Ev" + strconv.Itoa(n), "event_time": p.now().Unix(),
		"event": event, "authorizations": []any{map[string]any{"user_id": "UBOT", "is_bot": true}},
	})
	if err != nil {
		return err
	}
	return p.send(ctx, app+"/slack/main", "application/json", body)
}

// press sends a pressed button.
func (p *slackPlatform) press(ctx context.Context, app, user, channel string, l letter, action int) error {
	if len(l.blocks) == 0 {
		return fmt.Errorf("%w: the message has no buttons", errUnexpected)
	}
	block := l.blocks[len(l.blocks)-1]
	pressed := block.Elements[action]
	body, err := json.Marshal(map[string]any{
		"type": "block_actions", "team": map[string]any{"id": "T1"}, "user": map[string]any{"id": user, "name": user},
		"channel": map[string]any{"id": channel}, "trigger_id": "trigger-" + pressed.Value,
		"container": map[string]any{"type": "message", "message_ts": "1700000000.000900", "channel_id": channel},
		"message":   map[string]any{"ts": "1700000000.000900"},
		"actions": []any{map[string]any{
			"type": "button", "action_id": pressed.ActionID, "block_id": block.BlockID, "value": pressed.Value,
			"action_ts": "1700000001.000000",
		}},
	})
	if err != nil {
		return err
	}
	return p.send(ctx, app+"/slack/main", "application/x-www-form-urlencoded", []byte("payload="+url.QueryEscape(string(body))))
}

// send signs a request (https://docs.slack.dev/authentication/verifying-requests-from-slack).
func (p *slackPlatform) send(ctx context.Context, address, contentType string, body []byte) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return err
	}
	at := strconv.FormatInt(p.now().Unix(), 10)
	mac := hmac.New(sha256.New, []byte(p.secret))
	mac.Write([]byte("v0:" + at + ":"))
	mac.Write(body)
	r.Header.Set("Content-Type", contentType)
	r.Header.Set("X-Slack-Request-Timestamp", at)
	r.Header.Set("X-Slack-Signature", "v0="+hex.EncodeToString(mac.Sum(nil)))
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%w: the app answered an event with status %d", errUnexpected, response.StatusCode)
	}
	return nil
}
