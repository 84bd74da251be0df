package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/twmb/franz-go/pkg/kgo"
)

// The tools by name. delegateTask is not the tool worker's but the dispatcher's.
const (
	calculator   = "calculator"
	clockTool    = "clock"
	delegateTask = "delegate_task"
)

type (
	expressionInput struct {
		Expression string `json:"expression"`
	}
	computed struct {
		Value jsontext.Value `json:"value"`
	}
	zoneInput struct {
		Zone string `json:"zone,omitzero"`
	}
	clockReading struct {
		Time string `json:"time"`
		Zone string `json:"zone"`
	}
	taskInput struct {
		Task string `json:"task"`
	}
	delegated struct {
		Answer string `json:"answer"`
	}
	failure struct {
		Error  string `json:"error"`
		Reason string `json:"reason"`
	}
)

var errNoExpression = errors.New("input has no expression")

// tools is the tool worker of an agent: tool-use in, tool-use-result out. A tool that fails gives a result with
// status error. A call of an unknown tool goes to tool-use-dlq, and the turn processor answers it.
func tools(agent string, now func() time.Time) role {
	return role{
		group: topicOf(agent, "tool-execution"),
		topic: topicOf(agent, toolUses),
		dlq:   topicOf(agent, toolUseDLQ),
		answer: func(r *kgo.Record) ([]*kgo.Record, error) {
			var use toolUse
			if err := json.Unmarshal(r.Value, &use); err != nil {
				return nil, fmt.Errorf("not a tool use: %w", err)
			}
			begin := now()
			var result any
			var err error
			switch use.Name {
			case calculator:
				result, err = calculate(use.Input)
			case clockTool:
				result, err = tellTime(use.Input, begin)
			case delegateTask:
				return nil, nil
			default:
				return nil, fmt.Errorf("unknown tool %q", use.Name)
			}
			status := statusSuccess
			if err != nil {
				result, status = failure{Error: err.Error(), Reason: "tool_failed"}, statusError
			}
			return []*kgo.Record{resultOf(agent, use, encode(result), status, begin, now())}, nil
		},
	}
}

func resultOf(agent string, use toolUse, result jsontext.Value, status string, begin, end time.Time) *kgo.Record {
	return &kgo.Record{Topic: topicOf(agent, toolUseResults), Key: []byte(use.SessionID), Value: encode(toolResult{
		SessionID: use.SessionID, ToolUseID: use.ToolUseID, ToolID: &use.Name, Name: use.Name,
		Result: result, Status: status, TotalTools: use.TotalTools,
		LatencyMS: end.Sub(begin).Milliseconds(), Timestamp: stamp(end),
	})}
}

func calculate(input jsontext.Value) (any, error) {
	var in expressionInput
	if err := json.Unmarshal(input, &in); err != nil || in.Expression == "" {
		return nil, errNoExpression
	}
	value, err := evaluate(in.Expression)
	return computed{Value: jsontext.Value(value)}, err
}

func tellTime(input jsontext.Value, now time.Time) (any, error) {
	var in zoneInput
	if err := json.Unmarshal(input, &in); err != nil {
		return nil, errors.New("zone is not a string")
	}
	if in.Zone == "" {
		in.Zone = "UTC"
	}
	zone, err := time.LoadLocation(in.Zone)
	if err != nil {
		return nil, fmt.Errorf("unknown time zone %q", in.Zone)
	}
	return clockReading{Time: now.In(zone).Format("15:04:05"), Zone: in.Zone}, nil
}
