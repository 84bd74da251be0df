package gate

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/internal/rows/gaterow"
	"github.com/turntable-streams/turntable/internal/truncate"
	"github.com/turntable-streams/turntable/processors/internal/machine"
	"github.com/turntable-streams/turntable/processors/internal/seen"
	"github.com/turntable-streams/turntable/topics"
)

// Bounds of the texts on channels, in bytes.
const (
	codeSize   = 8   // of the code of a gate
	maxNote    = 500 // of the requester's message
	maxName    = 100 // of a tool and of a person
	maxOffered = 10  // codes that are listed, not bytes
)

// ask writes the question about a gate to the channel that its request came from, if it waits for a person and was not asked
// about. Repeats have the same ID.
func (t *transition) ask(g *gaterow.Gate) {
	if !t.config.Channels || len(g.Channel) == 0 || g.Asked || g.NoRoom || g.Closing != "" || g.ExpiresMs <= t.nowMS() {
		return
	}
	t.changed, g.Asked = true, true
	v := viewOf(g, t.key)
	if v.proof = topics.Proof(g.Proof); v.proof == topics.ProofCode {
		v.code = mailCode(g)
	}
	var buttons topics.Raw
	if v.proof == topics.ProofPlatform && v.allows(topics.VerdictApprove) && v.allows(topics.VerdictDeny) && seen.Whole(v.Args) {
		buttons = buttonsOf(g)
	}
	t.say("gate-ask-"+g.Id, question(v), topics.OriginRoute(rawOf(g.Channel), buttons), g.OpenedMs)
}

// announce tells the place where a gate was asked about how it ended. A gate that ended by a record that was held may have been
// asked about before a crash.
func (t *transition) announce(g *gaterow.Gate, o *gaterow.Outcome) {
	if len(g.Channel) == 0 || !g.Asked && t.replaying == nil {
		return
	}
	t.say("gate-end-"+g.Id, ended(g, o), topics.OriginRoute(rawOf(g.Channel), nil), o.AtMs)
}

// answer tells the person who decided on a channel why the decision has no effect.
func (t *transition) answer(r *machine.Record, d topics.GateDecision, text string) {
	t.say("gate-answer-"+d.DecisionID, text, topics.OriginRoute(d.Channel, nil), t.timeOf(r))
}

// say writes a message to a channel. Without Config.Channels, which may have changed since a gate was asked about, it does not.
func (t *transition) say(id, text string, to topics.Raw, at int64) {
	if !t.config.Channels {
		return
	}
	machine.Emit(&t.Effects, t.topics.ChannelMessages, t.key, id, topics.Output{
		SessionID: &t.key, Content: text, SourceAgent: t.topics.Agent, ReplyTo: to, Timestamp: iso(at),
	})
}

// buttonsOf returns the gate of the reply descriptor of a question, with which a transport shows buttons.
func buttonsOf(g *gaterow.Gate) topics.Raw {
	raw := append(topics.Raw(nil), `{"gate_id":`...)
	raw, _ = jsontext.AppendQuote(raw, g.Id) // invalid UTF-8 is replaced: no gate has that ID, so the button decides nothing
	raw = append(raw, `,"tool":`...)
	raw, _ = jsontext.AppendQuote(raw, name(g.Tool))
	return fmt.Appendf(raw, `,"expires_ms":%d}`, g.ExpiresMs)
}

var asks = map[topics.GateKind]string{
	topics.GateTool:       "The agent asks for approval to run",
	topics.GatePermission: "The agent asks for permission for",
	topics.GateInput:      "The agent asks a question about",
	topics.GateDelegation: "The agent asks for approval to hand work over:",
}

// question returns the text that asks about a gate. What the requester wrote is data: it is in code spans and fences that it
// cannot close, so that it can pass for no part of the question.
func question(v View) string {
	var b strings.Builder
	verb, ok := asks[v.Kind]
	if !ok {
		verb = "The agent asks for a decision about"
	}
	fmt.Fprintf(&b, "%s `%s`.\n", verb, name(v.Tool))
	if v.Message != "" {
		fence(&b, "Message", v.Message, maxNote, len(v.Message))
	}
	if v.Args != nil {
		arguments(&b, v.Args)
	}
	if v.Dangerous {
		b.WriteString("\nIt is marked as dangerous.\n")
	}
	b.WriteString("\n")
	commands(&b, v)
	expires, _ := time.Parse(time.RFC3339, v.ExpiresAt)
	fmt.Fprintf(&b, "\nThe request expires at %s.", expires.UTC().Format("15:04 UTC on 2 January 2006"))
	return b.String()
}

// commands writes how to decide.
func commands(b *strings.Builder, v View) {
	if v.proof != topics.ProofPlatform && v.proof != topics.ProofCode {
		fmt.Fprintf(b, "It cannot be decided here, because nothing proves who writes here. Decide at `/api/gates/%s`\n", name(v.GateID))
		return
	}
	code := cmp.Or(v.code, codeOf(v.GateID))
	if code != "" {
		code = " " + code
	}
	for _, c := range []struct {
		verdict       topics.GateVerdict
		text, command string
	}{{topics.VerdictApprove, "approve", "/approve"}, {topics.VerdictDeny, "deny", "/deny"}} {
		switch {
		case !v.allows(c.verdict):
		case c.verdict == topics.VerdictApprove && !seen.Whole(v.Args):
			fmt.Fprintf(b, "It cannot be approved here, because not all is shown. The whole request: `/api/gates/%s`\n", name(v.GateID))
		default:
			fmt.Fprintf(b, "To %s: `%s%s`\n", c.text, c.command, code)
		}
	}
	if v.allows(topics.VerdictAnswer) {
		b.WriteString("It cannot be answered here.\n")
	}
}

// arguments writes the arguments of a call: the beginning of those that are not shown everywhere. Deep ones are on one line.
func arguments(b *strings.Builder, args topics.Raw) {
	max, text := seen.Limit, indented(args)
	if seen.Whole(args) {
		if max = math.MaxInt; len(text) > 4*seen.Limit {
			text = string(args)
		}
	}
	fence(b, "Arguments", text, max, len(args))
}

// fence writes a titled block of foreign text, cut to max bytes. size is that of the whole, for the note that says so.
func fence(b *strings.Builder, title, text string, max, size int) {
	text = harmless(text)
	kept := truncate.Text(text, max)
	fmt.Fprintf(b, "\n%s:\n```\n%s\n```\n", title, kept)
	if len(kept) < len(text) {
		fmt.Fprintf(b, "(Not all is shown: it has %d bytes.)\n", size)
	}
}

// indented returns arguments on several lines.
func indented(args topics.Raw) string {
	v := jsontext.Value(bytes.Clone(args))
	if v.Indent(jsontext.WithIndent("  ")) != nil { // no gate with such arguments is open
		return ""
	}
	return string(v)
}

// harmless returns foreign text without backticks and without characters that are not printable: in JSON, these can only be in
// strings, where the escapes mean the same. A text without backticks closes no fence.
func harmless(text string) string {
	var b strings.Builder
	for _, r := range strings.ToValidUTF8(text, "?") {
		switch {
		case r == '\n' || r != '`' && unicode.IsPrint(r):
			b.WriteRune(r)
		case r > 0xffff:
			one, two := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, one, two)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// name returns a foreign name on one line, for a code span.
func name(s string) string {
	return truncate.Marked(strings.Map(func(r rune) rune {
		if r == '`' || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s), maxName)
}

// codeOf returns the code of a gate, empty if its ID does not begin with characters that people can type.
func codeOf(id string) string {
	id = id[:min(codeSize, len(id))]
	for _, r := range id {
		if r != '-' && r != '_' && (r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r)) {
			return ""
		}
	}
	return id
}

// which asks which of several gates is meant. Codes that two gates share are shown in full.
func which(found []*gaterow.Gate) string {
	var b strings.Builder
	b.WriteString(textWhich)
	for i, g := range found {
		if i == maxOffered {
			fmt.Fprintf(&b, "\n(%d more)", len(found)-i)
			break
		}
		code := codeOf(g.Id)
		for _, other := range found {
			if other != g && codeOf(other.Id) == code {
				code = name(g.Id)
			}
		}
		fmt.Fprintf(&b, "\n`%s` for `%s`", code, name(g.Tool))
	}
	return b.String()
}

// ended returns the text that tells how a gate ended.
func ended(g *gaterow.Gate, o *gaterow.Outcome) string {
	text := "Withdrawn"
	switch topics.GateStatus(o.Status) {
	case topics.GateApproved:
		text = "Approved"
	case topics.GateDenied:
		text = "Denied"
	case topics.GateTimedOut:
		text = "Expired without a decision"
	}
	switch topics.GateCause(o.Cause) {
	case topics.CauseHuman:
		if o.By != "" {
			text += " by `" + name(o.By) + "`"
		}
	case topics.CausePolicy:
		text += " by the policy"
	case topics.CauseGrant:
		text += " by a standing approval"
	case topics.CauseNoRoom:
		text += ": " + o.Reason
	}
	text += ": `" + name(g.Tool) + "`"
	if code := codeOf(g.Id); code != "" {
		text += " (" + code + ")"
	}
	return text + "."
}
