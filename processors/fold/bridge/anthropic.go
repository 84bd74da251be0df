package bridge

import (
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/processors/fold/folder"
	"github.com/turntable-streams/turntable/topics"
)

// Anthropic translates the streaming events of one turn on Anthropic's Messages API. It reads the JSON of the SSE data lines
// and needs no SDK. A turn can consist of several messages of the API: when a message stops for tool calls, the turn continues
// with their results and the next message. The zero value is ready to use. It is not safe for concurrent use.
type Anthropic struct {
	turn   Turn
	blocks map[string]*block // open blocks of the current message, by index
	stop   string
	// Tokens of the earlier messages, and of the current one.
	before, now tokens
}

// tokens are token counts. Tokens that were written to a cache or read from it count as input, too.
type tokens struct{ input, written, cached, output int64 }

func (t tokens) in() int64 { return t.input + t.written + t.cached }

// anthropicEvents maps the kinds of streaming events to their translations. Other kinds are ignored.
var anthropicEvents = map[string]func(*Anthropic, topics.Raw){
	"message_start":       (*Anthropic).messageStart,
	"content_block_start": (*Anthropic).blockStart,
	"content_block_delta": (*Anthropic).blockDelta,
	"content_block_stop":  (*Anthropic).blockStop,
	"message_delta":       (*Anthropic).messageDelta,
	"message_stop":        (*Anthropic).messageStop,
	"error":               (*Anthropic).failure,
}

// Event translates the data of one streaming event. It fails with folder.ErrSyntax if it is not JSON. With folder.ErrDepth it
// also returns the valid events.
func (b *Anthropic) Event(data topics.Raw) ([]folder.Event, error) {
	if !valid(data) {
		return nil, folder.ErrSyntax
	}
	if translate := anthropicEvents[String(Get(data, "type"))]; translate != nil {
		translate(b, data)
	}
	return b.turn.Take()
}

// ToolResult adds the result of a tool that the caller ran between two messages. The output is any JSON value; otherwise
// ToolResult fails with folder.ErrSyntax.
func (b *Anthropic) ToolResult(id string, output topics.Raw, isError bool) ([]folder.Event, error) {
	if !valid(output) {
		return nil, folder.ErrSyntax
	}
	b.turn.Result(id, output, isError)
	return b.turn.Take()
}

func (b *Anthropic) messageStart(data topics.Raw) {
	b.turn.Close()
	b.blocks = map[string]*block{}
	b.before.input += b.now.in()
	b.before.output += b.now.output
	b.now, b.stop = tokens{}, ""
	b.count(Get(data, "message", "usage"))
}

func (b *Anthropic) messageDelta(data topics.Raw) {
	if reason := String(Get(data, "delta", "stop_reason")); reason != "" {
		b.stop = reason
	}
	b.count(Get(data, "usage"))
}

// count replaces the token counts of the current message, which are totals. An absent count is not changed.
func (b *Anthropic) count(usage topics.Raw) {
	for key, held := range map[string]*int64{
		"input_tokens": &b.now.input, "cache_creation_input_tokens": &b.now.written,
		"cache_read_input_tokens": &b.now.cached, "output_tokens": &b.now.output,
	} {
		if n, ok := number(Get(usage, key)); ok {
			*held = n
		}
	}
}

// messageStop ends the turn, unless the message stopped for tool calls or was paused.
func (b *Anthropic) messageStop(topics.Raw) {
	b.turn.Close()
	input, output := b.before.input+b.now.in(), b.before.output+b.now.output
	b.turn.Usage(integer(input), integer(output), integer(input+output), nil)
	if b.stop != "tool_use" && b.stop != "pause_turn" {
		b.turn.Done(b.stop)
	}
}

func (b *Anthropic) failure(data topics.Raw) {
	message := String(Get(data, "error", "message"))
	if message == "" {
		message = String(Get(data, "error", "type"))
	}
	b.turn.Fail(message)
}

func number(v topics.Raw) (int64, bool) {
	n, err := strconv.ParseInt(string(v), 10, 64)
	return n, err == nil && n >= 0
}

func integer(n int64) topics.Raw { return strconv.AppendInt(nil, n, 10) }

func valid(v topics.Raw) bool {
	return jsontext.Value(v).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}
