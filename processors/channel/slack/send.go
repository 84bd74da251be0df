package slack

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	slackapi "github.com/slack-go/slack"

	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/internal/platform"
	"github.com/turntable-streams/turntable/processors/channel/text"
)

// metadataType is the event type of the metadata of messages, https://docs.slack.dev/messaging/message-metadata. Its payload has
// the key of the chunk: chat.postMessage documents no argument by which it recognises repeats, so an attempt whose response was
// lost can post the message twice, and the key tells which messages are the same.
const metadataType = "turntable_message"

// Send implements adapter.Adapter. The request is a form, which every method of the Web API takes.
func (a *Adapter) Send(ctx context.Context, c adapter.Chunk) (adapter.Sent, error) {
	exchange := &exchange{client: a.client}
	api := slackapi.New(a.config.Token, slackapi.OptionAPIURL(a.config.URL+"/"), slackapi.OptionHTTPClient(exchange))
	_, ts, err := api.PostMessageContext(ctx, c.To.Recipient, options(c)...)
	switch refusal := (slackapi.SlackErrorResponse{}); {
	case exchange.err != nil:
		return adapter.Sent{}, platform.Failure(exchange.err)
	case exchange.status != 0 && exchange.status != http.StatusOK:
		if f := platform.StatusFailure(exchange.status, exchange.header, a.now()); f != nil {
			platform.Explain(f, "") // Slack itself refuses with 200
			return adapter.Sent{}, f
		}
		return adapter.Sent{}, &adapter.Failure{Reason: reasonUnclear, Status: exchange.status}
	case errors.As(err, &refusal):
		return adapter.Sent{}, refused(refusal.Err, platform.RetryAfter(exchange.header.Get("Retry-After"), a.now()))
	case err != nil || ts == "": // the library takes {"ok":false} without an error for a success
		return adapter.Sent{}, &adapter.Failure{Reason: reasonUnclear, Status: exchange.status}
	}
	return adapter.Sent{ID: ts}, nil
}

const reasonUnclear = "response is not understood"

// exchange is the one request of a Send, whose status and headers the library does not return in all cases.
type exchange struct {
	client *http.Client
	status int
	header http.Header
	err    error
}

func (e *exchange) Do(r *http.Request) (*http.Response, error) {
	response, err := e.client.Do(r)
	if err != nil {
		e.err = err
		return nil, err
	}
	e.status, e.header = response.StatusCode, response.Header
	return response, nil
}

// options are the arguments of chat.postMessage.
func options(c adapter.Chunk) []slackapi.MsgOption {
	list := []slackapi.MsgOption{
		slackapi.MsgOptionDisableLinkUnfurl(), slackapi.MsgOptionDisableMediaUnfurl(),
		slackapi.MsgOptionMetadata(slackapi.SlackMetadata{
			EventType: metadataType, EventPayload: map[string]any{"key": c.Key},
		}),
	}
	if c.To.Thread != "" {
		list = append(list, slackapi.MsgOptionTS(c.To.Thread))
	}
	switch {
	case c.Ask != nil:
		// The text is for notifications if there are blocks.
		notification := c.Text
		if c.Format != text.SlackMrkdwn {
			notification = escape(notification)
		}
		list = append(list, slackapi.MsgOptionText(notification, false), slackapi.MsgOptionBlocks(blocks(c)...))
	case c.Format == text.Markdown:
		list = append(list, slackapi.MsgOptionMarkdownText(withoutMentions(c.Text)))
	case c.Format == text.SlackMrkdwn:
		list = append(list, slackapi.MsgOptionText(c.Text, false))
	default:
		list = append(list, slackapi.MsgOptionText(escape(c.Text), false), slackapi.MsgOptionDisableMarkdown())
	}
	return list
}

// The action IDs of buttons. Their value is the ID of the gate.
const (
	actionApprove = "turntable_approve"
	actionDeny    = "turntable_deny"
	// maxValue is the longest value of a button, https://docs.slack.dev/reference/block-kit/block-elements/button-element.
	maxValue = 2000
)

// blocks are the text and the buttons of a request for approval.
func blocks(c adapter.Chunk) []slackapi.Block {
	var body slackapi.Block
	switch c.Format {
	case text.Markdown:
		body = slackapi.NewMarkdownBlock("", withoutMentions(c.Text))
	case text.SlackMrkdwn:
		body = slackapi.NewSectionBlock(slackapi.NewTextBlockObject(slackapi.MarkdownType, c.Text, false, true), nil, nil)
	default:
		body = slackapi.NewSectionBlock(slackapi.NewTextBlockObject(slackapi.PlainTextType, c.Text, false, false), nil, nil)
	}
	if len(c.Ask.GateID) > maxValue {
		return []slackapi.Block{body} // the text says how to answer without buttons
	}
	button := func(action, label string, style slackapi.Style) slackapi.BlockElement {
		b := slackapi.NewButtonBlockElement(action, c.Ask.GateID, slackapi.NewTextBlockObject(slackapi.PlainTextType, label, false, false))
		b.Style = style
		return b
	}
	return []slackapi.Block{body, slackapi.NewActionBlock("turntable_gate",
		button(actionApprove, "Approve", slackapi.StylePrimary), button(actionDeny, "Deny", slackapi.StyleDanger))}
}

// references are the beginnings of mentions, which are notified in Markdown too. A word joiner makes them text.
var references = strings.NewReplacer("<!", "<\u2060!", "<@", "<\u2060@", "<#", "<\u2060#")

// withoutMentions returns a Markdown text that mentions nobody: models repeat what strangers wrote. Entities would be visible in code.
func withoutMentions(s string) string { return references.Replace(s) }

var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// escape escapes the characters that begin Slack's formatting, https://docs.slack.dev/messaging/formatting-message-text#escaping.
func escape(s string) string { return escaper.Replace(s) }

// final are the errors of chat.postMessage that another attempt does not change. The errors of tokens, such as invalid_auth and
// account_inactive, are not among them: an operator can repair the account while the delivery is retried.
var final = map[string]bool{
	"as_user_not_supported": true, "cannot_dm_bot": true, "cannot_reply_to_message": true, "channel_not_found": true,
	"duplicate_channel_not_found": true, "duplicate_message_not_found": true, "invalid_arguments": true, "invalid_blocks": true,
	"invalid_blocks_format": true, "invalid_metadata_format": true, "invalid_metadata_schema": true, "is_archived": true,
	"is_inactive": true, "markdown_text_conflict": true, "messages_tab_disabled": true, "metadata_too_large": true,
	"msg_blocks_too_long": true, "msg_too_long": true, "no_text": true, "not_in_channel": true, "restricted_action": true,
	"restricted_action_non_threadable_channel": true, "restricted_action_read_only_channel": true,
	"restricted_action_thread_locked": true, "restricted_action_thread_only_channel": true, "thread_not_found": true,
	"user_disabled": true, "user_not_found": true,
}

// defaultWait is the wait after a rate limit without Retry-After: chat.postMessage allows one message per second and channel
// (https://docs.slack.dev/apis/web-api/rate-limits).
const defaultWait = time.Second

// refused is the failure of a response with "ok": false.
func refused(code string, wait time.Duration) *adapter.Failure {
	f := &adapter.Failure{Reason: adapter.Code(code), Status: http.StatusOK, Final: final[code], RetryAfter: wait}
	if (code == "ratelimited" || code == "rate_limited") && wait == 0 {
		f.RetryAfter = defaultWait
	}
	if f.Reason == "" {
		f.Reason = reasonUnclear
	}
	return f
}

// Check implements adapter.Checker with auth.test (https://docs.slack.dev/reference/methods/auth.test).
func (a *Adapter) Check(ctx context.Context) error {
	answer, err := platform.Do(ctx, a.client, http.MethodPost, a.config.URL+"/auth.test", a.config.Token, nil)
	if err != nil {
		return err
	}
	var r struct {
		OK    bool   `json:"ok"`
		Error string `json:"error"`
	}
	f := platform.StatusFailure(answer.Status, answer.Header, a.now())
	switch {
	case f != nil:
		return f
	case platform.Decode(answer.Body, &r) != nil:
		return &adapter.Failure{Reason: reasonUnclear, Status: answer.Status}
	case !r.OK:
		f := refused(r.Error, platform.RetryAfter(answer.Header.Get("Retry-After"), a.now()))
		if transient[r.Error] {
			f.RetryAfter = max(f.RetryAfter, defaultWait)
		}
		return f
	}
	return nil
}

// transient are the errors of auth.test that say nothing about the token.
var transient = map[string]bool{"fatal_error": true, "internal_error": true, "request_timeout": true, "service_unavailable": true}
