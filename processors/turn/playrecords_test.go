package turn

import (
	"fmt"
	"strconv"

	"github.com/turntable-streams/turntable/internal/rows/turnrow"
	"github.com/turntable-streams/turntable/topics"
)

// Records as their writers write them.

func message(text string, fields ...string) string {
	m := `{"session_id":"s1","user_id":"mira","role":"user","content":` + strconv.Quote(text) +
		`,"timestamp":"2026-06-20T08:15:03.120Z","metadata":`
	if len(fields) == 0 {
		return m + `null}`
	}
	return m + fields[0] + `}`
}

func requestMessage(text, request string) string {
	return message(text, `{"request_id":`+strconv.Quote(request)+`}`)
}

// response is a think-response that echoes what it was asked.
func response(asked enriched, more string) string {
	history := asked.History
	if history == nil {
		history = topics.Raw("[]")
	}
	return fmt.Sprintf(`{"session_id":"s1","user_id":"mira","total_session_cost":0.5,"previous_messages":%s,`+
		`"last_input_message":%s,%s}`, history, asked.LatestInput, more)
}

func saying(text string) string {
	return `"last_input_response":[{"role":"assistant","content":` + strconv.Quote(text) + `}],` +
		`"think_input_tokens":7,"think_output_tokens":3,"end_turn":true`
}

func calling(ids ...string) string {
	items := ""
	for i, id := range ids {
		if i > 0 {
			items += ","
		}
		items += fmt.Sprintf(`{"tool_use_id":%q,"tool_id":"look","name":"look","input":{"at":1},"session_id":"s1"}`, id)
	}
	return `"last_input_response":[{"role":"assistant","content":[]}],"tool_uses":[` + items + `],"end_turn":false`
}

func toolResult(id, text string) string {
	return fmt.Sprintf(`{"session_id":"s1","tool_use_id":%q,"name":"look","result":{"said":%q},"latency_ms":5,`+
		`"status":"success","total_tools":1,"timestamp":"2026-06-20T08:15:05.900Z"}`, id, text)
}

// ask opens a turn; think and answer play the model.
func (p *play) ask(text string) enriched {
	p.tb.Helper()
	return the[enriched](p.tb, p.send("message-input", message(text)))
}

func (p *play) respond(asked enriched, more string) effects {
	p.tb.Helper()
	return p.send("think-request-response", response(asked, more))
}

// resultOf is how the n-th call of the open step ended.
func (p *play) resultOf(n int) *turnrow.Result {
	p.tb.Helper()
	t := p.state().Turn
	return resultOfCall(t, t.Calls[n])
}

func (p *play) result(id, text string) effects {
	p.tb.Helper()
	return p.send("tool-use-result", toolResult(id, text))
}
