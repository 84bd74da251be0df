package anthropic

import (
	"maps"
	"slices"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/processors/turn/think/internal/provider"
	"github.com/turntable-streams/turntable/processors/turn/think/internal/toolcall"
	"github.com/turntable-streams/turntable/topics"
)

// reader translates the events of a streamed message.
type reader struct {
	client   *provider.Client
	reply    *provider.Reply
	tokens   think.Tokens
	blocks   map[int64]*block // open calls and thinking blocks
	thinking []thought
	stop     sdk.StopReason
	ended    bool
}

// block is a call or a thinking block that is not complete.
type block struct {
	kind, id, name string
	// start is what the block had at its start, pieces what came later: the input of a call, or the thinking.
	start     string
	joiner    toolcall.Joiner
	pieces    strings.Builder
	signature string
	data      string // of redacted thinking
}

// event translates an event.
func (r *reader) event(e sdk.MessageStreamEventUnion) {
	switch e.Type {
	case "message_start":
		u := e.Message.Usage
		r.tokens = think.Tokens{
			Input: u.InputTokens, CacheRead: u.CacheReadInputTokens, CacheWrite: u.CacheCreationInputTokens,
			Output: u.OutputTokens,
		}
		r.reply.Yield(think.Delta{Usage: r.client.Usage(r.tokens)}) // what a call costs that is cancelled later
	case "content_block_start":
		r.start(e.Index, provider.Get(topics.Raw(e.RawJSON()), "content_block"))
	case "content_block_delta":
		r.delta(e.Index, provider.Get(topics.Raw(e.RawJSON()), "delta"))
	case "content_block_stop":
		r.stopBlock(e.Index)
	case "message_delta":
		if e.Delta.StopReason != "" {
			r.stop = e.Delta.StopReason
		}
		r.count(e.Usage)
		r.reply.Yield(think.Delta{Usage: r.client.Usage(r.tokens)})
	case "message_stop":
		r.ended = true
	}
}

func (r *reader) start(index int64, content topics.Raw) {
	kind := provider.String(content, "type")
	switch kind {
	case "text":
		r.reply.Say(provider.Get(content, "text"))
		return
	case "tool_use", "thinking", "redacted_thinking":
	default:
		return
	}
	if r.blocks == nil {
		r.blocks = map[int64]*block{}
	}
	b := &block{kind: kind, id: provider.String(content, "id"), name: provider.String(content, "name"), signature: provider.String(content, "signature"), data: provider.String(content, "data")}
	r.blocks[index] = b
	switch kind {
	case "tool_use": // some servers send the whole input here
		b.start = string(provider.Get(content, "input"))
	case "thinking":
		r.think(b, provider.Get(content, "thinking"))
	}
}

func (r *reader) delta(index int64, d topics.Raw) {
	b := r.blocks[index]
	switch provider.String(d, "type") {
	case "text_delta":
		r.reply.Say(provider.Get(d, "text"))
	case "thinking_delta":
		if b == nil {
			b = &block{}
		}
		r.think(b, provider.Get(d, "thinking"))
	case "signature_delta":
		if b != nil {
			b.signature += provider.String(d, "signature")
		}
	case "input_json_delta":
		if b != nil {
			b.add(provider.Get(d, "partial_json"))
		}
	}
}

// think publishes a piece of thinking.
func (r *reader) think(b *block, piece topics.Raw) {
	if text := b.joiner.Add(piece); text != "" {
		b.pieces.WriteString(text)
		r.reply.Yield(think.Delta{Thought: text})
	}
}

// add adds a piece of a call's input, which some servers send as an object instead of its text.
func (b *block) add(piece topics.Raw) {
	if jsontext.Value(piece).Kind() == '{' {
		b.pieces.Write(piece)
	}
	b.pieces.WriteString(b.joiner.Add(piece))
}

// stopBlock ends a block.
func (r *reader) stopBlock(index int64) {
	b := r.blocks[index]
	delete(r.blocks, index)
	switch {
	case b == nil:
		r.reply.EndBlock()
	case b.kind == "tool_use":
		input := b.pieces.String() + b.joiner.End()
		if strings.TrimSpace(input) == "" {
			input = b.start
		}
		r.reply.Call(b.id, b.name, input)
	default:
		r.keep(b)
		r.reply.Yield(think.Delta{EndBlock: true})
	}
}

// keep keeps a thinking block, which the API requires back with the calls of the message.
func (r *reader) keep(b *block) {
	raw := quoted([]byte(`{"type":`), b.kind)
	if b.kind == "redacted_thinking" {
		raw = quoted(append(raw, `,"data":`...), b.data)
	} else {
		raw = quoted(append(raw, `,"thinking":`...), b.pieces.String()+b.joiner.End())
		raw = quoted(append(raw, `,"signature":`...), b.signature)
	}
	r.thinking = append(r.thinking, thought{r.reply.Blocks, append(raw, '}')})
}

// count replaces the token counts that the event has. They are totals.
func (r *reader) count(u sdk.MessageDeltaUsage) {
	for _, c := range []struct {
		sent bool
		now  int64
		held *int64
	}{
		{u.JSON.InputTokens.Valid(), u.InputTokens, &r.tokens.Input},
		{u.JSON.CacheReadInputTokens.Valid(), u.CacheReadInputTokens, &r.tokens.CacheRead},
		{u.JSON.CacheCreationInputTokens.Valid(), u.CacheCreationInputTokens, &r.tokens.CacheWrite},
		{u.JSON.OutputTokens.Valid(), u.OutputTokens, &r.tokens.Output},
	} {
		if c.sent {
			*c.held = c.now
		}
	}
}

// end ends the reply when its stream has ended. Some servers do not end the blocks.
func (r *reader) end() error {
	if !r.ended {
		return think.ErrResponse
	}
	for _, index := range slices.Sorted(maps.Keys(r.blocks)) {
		r.stopBlock(index)
	}
	if state := stateOf(r.thinking); state != nil && r.reply.Calls > 0 {
		r.client.State(r.reply, state)
	}
	return r.reply.End(string(r.stop))
}

func quoted(b []byte, text string) []byte {
	b, _ = jsontext.AppendQuote(b, text)
	return b
}
