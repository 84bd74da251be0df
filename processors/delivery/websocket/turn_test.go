package websocket

import (
	"fmt"
	"strings"

	"github.com/turntable-streams/turntable/processors"
)

// turnRecords returns the records of a turn with tool steps, in causal order: each step has calls, and the last one answers. own
// says whether the model and the tools write IDs. id is the tool_use_id of a call.
func turnRecords(number, steps, calls int, own bool, id func(step, call int) string) []processors.Inbound {
	turn := fmt.Sprintf("%032x", number)
	var all []processors.Inbound
	offsets := map[string]int64{}
	add := func(suffix, header, value string) {
		offsets[suffix]++
		change := func(*processors.Inbound) {}
		if header != "" {
			change = withID(turn + "/" + header)
		}
		all = append(all, record(suffix, "s", int64(number*1000)+offsets[suffix], value, change))
	}
	worker := func(header string) string {
		if own {
			return header
		}
		return ""
	}
	ids := func(step int) (items string) {
		for i := range calls {
			items += fmt.Sprintf(`,{"tool_use_id":%q}`, id(step, i))
		}
		return strings.TrimPrefix(items, ",")
	}
	message := func(step int) string {
		role := "tool"
		if step == 1 {
			role = "user"
		}
		return fmt.Sprintf(`{"role":%q,"timestamp":"%d-%d"}`, role, number, step)
	}
	ask := func(step int, answer string) {
		add("enriched-message-input", fmt.Sprintf("%d/enriched/0", step), `{"latest_input":`+message(step)+`}`)
		add("think-request-response", worker(fmt.Sprintf("%d/enriched/0/think", step)), `{"last_input_message":`+message(step)+`,`+answer+`}`)
	}
	add("message-input", "", message(1))
	for step := 1; step <= steps; step++ {
		ask(step, `"tool_uses":[`+ids(step)+`],"end_turn":false`)
		for i := range calls {
			add("tool-use", fmt.Sprintf("%d/tool-use/%d", step, i), fmt.Sprintf(`{"tool_use_id":%q}`, id(step, i)))
		}
		for i := range calls {
			add("tool-use-result", worker(fmt.Sprintf("%d/tool-use/%d/result", step, i)), fmt.Sprintf(`{"tool_use_id":%q}`, id(step, i)))
		}
		add("tool-use-all-complete", fmt.Sprintf("%d/all-complete/0", step), `{"results":[`+ids(step)+`]}`)
		add("message-input", fmt.Sprintf("%d/message/0", step), message(step+1))
	}
	ask(steps+1, `"tool_uses":null,"end_turn":true`)
	add("message-output", "0/output/0", fmt.Sprintf(`{"content":"%d"}`, number))
	return all
}
