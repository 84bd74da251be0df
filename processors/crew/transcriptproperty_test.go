package crew_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/turntable-streams/turntable/processors/crew/internal/transcript"
	"github.com/turntable-streams/turntable/topics"
)

// Whatever an agent writes, the row is bounded, and an open call is dropped only if no closed one is left.
func TestTheRowIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &session{t: t}
		sizes := rapid.SampledFrom([]int{0, 10, 1000, 5000, 20_000})
		statuses := rapid.SampledFrom([]string{"pending", "in_progress", "completed", "failed", "other"})
		for n := range rapid.IntRange(0, 6).Draw(t, "batches") {
			text := strings.Repeat("x", sizes.Draw(t, "size"))
			var batch []string
			for i := range rapid.IntRange(0, 12).Draw(t, "calls") {
				batch = append(batch, fmt.Sprintf(
					`{"sessionUpdate":"tool_call","toolCallId":"%d-%d","title":"%[3]s","kind":"%[3]s","status":%q,"rawInput":"%[3]s",
					"rawOutput":"%[3]s","content":[{"type":"text","text":"%[3]s"}],"locations":[{"path":"%[3]s"},{"path":"/a"}]}`,
					n, i, text, statuses.Draw(t, "status")))
			}
			batch = append(batch,
				fmt.Sprintf(`{"sessionUpdate":"plan","entries":[{"content":"%[1]s"},{"content":"%[1]s"}%s]}`, text,
					strings.Repeat(`,{"content":"x"}`, len(text)%1000)),
				`{"sessionUpdate":"session_info_update","title":"`+text+`"}`,
				`{"sessionUpdate":"current_mode_update","currentModeId":"`+text+`"}`,
				`{"sessionUpdate":"available_commands_update","availableCommands":[{"name":"`+text+`"}]}`,
				`{"sessionUpdate":"config_option_update","configOptions":[{"name":"`+text+`"},{"name":"x"}]}`,
				`{"sessionUpdate":"tool_call","toolCallId":"`+text+`"}`,
			)
			s.apply(batch...)
			tr := s.transcript()
			require.LessOrEqual(t, len(s.row), 160<<10)
			require.LessOrEqual(t, len(tr.Calls), 200)
			size := 0
			for _, c := range tr.Calls {
				size += proto.Size(c)
			}
			require.LessOrEqual(t, size, 48<<10)
		}
	})
}

func TestClosedCallsAreDroppedBeforeOpenOnes(t *testing.T) {
	s := &session{t: t}
	s.apply(`{"sessionUpdate":"tool_call","toolCallId":"open","title":"x","status":"in_progress"}`)
	for n := range 300 {
		s.apply(fmt.Sprintf(`{"sessionUpdate":"tool_call","toolCallId":"c%d","title":"x","status":"completed"}`, n))
	}
	calls := s.transcript().Calls
	require.Len(t, calls, 200)
	require.Equal(t, "open", calls[0].Id)
	require.Equal(t, "c101", calls[1].Id)
	require.Equal(t, "c299", calls[199].Id)
	require.Len(t, s.transcript().ToolCalls(), 50)
}

// However a text is split into chunks and the chunks into batches, the agent has said the same.
func TestTheTextDoesNotDependOnChunks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &session{t: t}
		chunks := rapid.SliceOfN(rapid.StringMatching(`[a-zé⟦\n]{0,5}`), 0, 20).Draw(t, "chunks")
		var got, want strings.Builder
		var batch []string
		flush := func() {
			changes := s.apply(batch...)
			require.LessOrEqual(t, len(changes), 1, "one event")
			for _, c := range changes {
				got.WriteString(c.Fields.(transcript.Text).Text)
			}
			batch = nil
		}
		for _, chunk := range chunks {
			want.WriteString(chunk)
			batch = append(batch, said(chunk))
			if rapid.Bool().Draw(t, "flush") {
				flush()
			}
		}
		flush()
		require.Equal(t, want.String(), got.String())
	})
}

func TestAnyUpdateCanBeApplied(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom([]string{
			"agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update", "plan", "usage_update",
			"available_commands_update", "current_mode_update", "config_option_update", "session_info_update", "x",
		}).Draw(t, "kind")
		values := rapid.SampledFrom([]string{`null`, `5`, `-1e400`, `"\ud800"`, `[]`, `[null,5,[{}]]`, `{}`, `{"type":"text"}`, `true`, `{"amount":1}`})
		u := `{"sessionUpdate":"` + kind + `"`
		for _, member := range []string{
			"content", "toolCallId", "title", "kind", "status", "locations", "rawInput", "entries", "used", "size", "cost",
			"availableCommands", "currentModeId", "configOptions", "messageId",
		} {
			if rapid.Bool().Draw(t, "has "+member) {
				u += `,"` + member + `":` + values.Draw(t, member)
			}
		}
		s := &session{t: t}
		s.apply(`{"sessionUpdate":"tool_call","toolCallId":"c1","title":"x"}`, u+"}")
		s.do(func(tr *transcript.Transcript) []transcript.Change { return tr.Asked(agentID, topics.Raw(u+"}")) })
	})
}
