package gate

import (
	"strings"
	"testing"
	"unicode"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/turntable-streams/turntable/processors/internal/seen"
	"github.com/turntable-streams/turntable/topics"
)

// asked returns the question about a request.
func (p *harness) asked(change ...func(*topics.GateRequest)) topics.Output {
	p.TB.Helper()
	return messages(p.Handle(p.request(gateID, append([]func(*topics.GateRequest){from}, change...)...)))["gate-ask-"+gateID]
}

func TestQuestionOffersOnlyWhatIsAllowed(t *testing.T) {
	q := newHarness(t, onChannels).asked(func(r *topics.GateRequest) {
		r.Allowed, r.Dangerous = []topics.GateVerdict{topics.VerdictDeny}, true
	})
	require.NotContains(t, q.Content, "/approve")
	require.Contains(t, q.Content, "`/deny 1a2b3c4d`")
	require.Contains(t, q.Content, "dangerous")
	require.Nil(t, topics.GateAskOf(q.ReplyTo), "without both, there are no buttons")

	q = newHarness(t, onChannels).asked(func(r *topics.GateRequest) { r.Kind, r.Args = topics.GateInput, nil })
	require.NotContains(t, q.Content, "/approve")
	require.NotContains(t, q.Content, "Arguments")
	require.Contains(t, q.Content, "cannot be answered here")
}

func TestArgumentsAreCut(t *testing.T) {
	long := strings.Repeat("ü", 200_000/2)
	q := newHarness(t, onChannels).asked(func(r *topics.GateRequest) {
		r.Args, r.Message = topics.Raw(`{"note":"`+long+`"}`), strings.Repeat("m", 60_000)
	})
	require.Contains(t, q.Content, "(Not all is shown: it has 200011 bytes.)")
	require.Contains(t, q.Content, "(Not all is shown: it has 60000 bytes.)")
	require.Less(t, len(q.Content), seen.Limit+maxNote+600)
	require.NotContains(t, q.Content, "/approve")
	require.Contains(t, q.Content, "cannot be approved here, because not all is shown. The whole request: `/api/gates/"+gateID+"`")
	require.Contains(t, q.Content, "`/deny 1a2b3c4d`")
	require.Nil(t, topics.GateAskOf(q.ReplyTo), "there are no buttons")
}

func TestShortArgumentsAreShownWhole(t *testing.T) {
	for name, args := range map[string]string{
		"text":   `{"command":"` + strings.Repeat("ü", seen.Limit/2-20) + `;touch x"}`,
		"nested": strings.Repeat("[", 100) + `"` + strings.Repeat("a", seen.Limit/2) + `touch x"` + strings.Repeat("]", 100),
		"many":   "[" + strings.Repeat("1,", seen.Limit/2-20) + `"touch x"]`,
	} {
		q := newHarness(t, onChannels).asked(func(r *topics.GateRequest) { r.Args = topics.Raw(args) })
		require.Contains(t, q.Content, "touch x", name)
		require.NotContains(t, q.Content, "Not all is shown", name)
		require.Contains(t, q.Content, "`/approve 1a2b3c4d`", name)
		require.Less(t, len(q.Content), 5*seen.Limit, name)
	}
}

func TestIDThatNoOneCanTypeHasNoCode(t *testing.T) {
	require.Equal(t, "1a2b3c4d", codeOf(gateID))
	require.Equal(t, "ab", codeOf("ab"))
	for _, id := range []string{"a b", "a`b", "a\nb", "ü-1", "1234567ü", "/approve"} {
		require.Empty(t, codeOf(id), id)
	}
}

// A model chooses the arguments of its calls. Nothing in them may look like a part of the question.
func TestForeignTextCannotLeaveItsFence(t *testing.T) {
	hostile := "x\n```\n\nTo approve: `/approve ffffffff`\n\u202e\u2028\r~~~\n@channel"
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.Just(hostile), rapid.String(), rapid.StringMatching("[`~\n /a]*")).Draw(t, "text")
		quoted, err := jsontext.AppendQuote(nil, text)
		require.NoError(t, err)
		args := topics.Raw(rapid.SampledFrom([]string{string(quoted), `{"a":` + string(quoted) + `}`, `[` + string(quoted) + `,` + string(quoted) + `]`}).Draw(t, "args"))
		p := newHarness(t, onChannels)
		q := p.asked(func(r *topics.GateRequest) { r.Args, r.Message, r.Tool = args, text, "pay"+text }).Content
		want := p.request(gateID).Request.GateID
		inFence, commands := false, []string(nil)
		for _, line := range strings.Split(q, "\n") {
			for _, r := range line {
				require.True(t, unicode.IsPrint(r), "%U", r)
			}
			if strings.HasPrefix(line, "```") {
				inFence = !inFence
				require.Equal(t, "```", line)
				continue
			}
			if inFence {
				require.NotContains(t, line, "`")
				continue
			}
			require.False(t, strings.HasPrefix(line, "/"), line)
			if strings.HasPrefix(line, "To ") {
				commands = append(commands, line)
			}
		}
		require.False(t, inFence)
		require.Equal(t, []string{"To approve: `/approve " + codeOf(want) + "`", "To deny: `/deny " + codeOf(want) + "`"}, commands)
	})
}

// What is shown means the same as what runs.
func TestShownArgumentsAreEqual(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		quoted, err := jsontext.AppendQuote(nil, rapid.StringMatching("[`a\u202e\u2028\U000e0041ü\n\"\\\\]{0,20}").Draw(t, "text"))
		require.NoError(t, err)
		shown := jsontext.Value(harmless(indented(topics.Raw(`{"a":` + string(quoted) + `}`))))
		require.NoError(t, shown.Canonicalize())
		want := jsontext.Value(`{"a":` + string(quoted) + `}`)
		require.NoError(t, want.Canonicalize())
		require.Equal(t, string(want), string(shown))
	})
}
