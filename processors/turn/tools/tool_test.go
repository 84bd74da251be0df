package tools_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/turn/tools"
	"github.com/turntable-streams/turntable/topics"
)

type refundInput struct {
	Order int    `json:"order" jsonschema:"the number of the order"`
	Why   string `json:"why,omitempty"`
}

func TestSchemaOfAToolIsThatOfItsInput(t *testing.T) {
	refund := tools.New("refund", "Refunds an order.", func(ctx context.Context, in refundInput) (map[string]int, error) {
		require.Equal(t, "c-1", tools.CallOf(ctx).ToolUseID)
		return map[string]int{"refunded": in.Order}, nil
	})
	require.JSONEq(t, `{"type":"object","properties":{"order":{"type":"integer","description":"the number of the order"},
		"why":{"type":"string"}},"required":["order"],"additionalProperties":false}`, string(refund.InputSchema))
	again := tools.New("refund", "", func(context.Context, refundInput) (any, error) { return nil, nil })
	require.Equal(t, string(refund.InputSchema), string(again.InputSchema), "the prompt can be cached")

	got, err := refund.Func(t.Context(), tools.Call{Name: "refund", ToolUseID: "c-1", Input: topics.Raw(`{"order":7}`)})
	require.NoError(t, err)
	require.Equal(t, map[string]int{"refunded": 7}, got)
	_, err = refund.Func(t.Context(), tools.Call{Name: "refund", Input: topics.Raw(`{"order":"secret"}`)})
	require.EqualError(t, err, "tools: input of refund does not fit *tools_test.refundInput")
	for _, input := range []string{`{}`, `{"number":7}`, `{"order":7,"reason":"secret"}`, `{"order":null}`, `[]`, `null`} {
		_, err = refund.Func(t.Context(), tools.Call{Name: "refund", Input: topics.Raw(input)})
		require.Error(t, err, "%s: a misnamed argument would run the tool with zero values", input)
		require.NotContains(t, err.Error(), "secret")
	}
	_, err = refund.Func(t.Context(), tools.Call{Name: "refund", Input: topics.Raw(`{"number":7}`)})
	require.EqualError(t, err, "tools: input of refund does not fit its schema: the members are order, why, required are order")
	require.Zero(t, tools.CallOf(t.Context()))
}

func TestToolWithoutArgumentsTakesAnEmptyInput(t *testing.T) {
	ping := tools.New("ping", "", func(context.Context, struct{}) (string, error) { return "pong", nil })
	for _, input := range []topics.Raw{nil, topics.Raw(`{}`), topics.Raw(`null`)} {
		got, err := ping.Func(t.Context(), tools.Call{Name: "ping", Input: input})
		require.NoError(t, err, string(input))
		require.Equal(t, "pong", got)
	}
}

func TestToolWithoutASchemaPanics(t *testing.T) {
	require.PanicsWithValue(t, `tools: tool "x": the input string is no struct`, func() {
		tools.New("x", "", func(context.Context, string) (any, error) { return nil, nil })
	})
	require.Panics(t, func() {
		tools.New("x", "", func(context.Context, struct{ C chan int }) (any, error) { return nil, nil })
	})
}

// A tool is a Go function; its schema comes from the type of its input.
func ExampleNew() {
	type order struct {
		Number int `json:"number" jsonschema:"the number of the order"`
	}
	find := tools.New("find_order", "Finds an order.", func(_ context.Context, o order) (string, error) {
		return fmt.Sprintf("order %d is on its way", o.Number), nil
	})
	fmt.Println(string(find.InputSchema))
	// Output: {"type":"object","properties":{"number":{"type":"integer","description":"the number of the order"}},"required":["number"],"additionalProperties":false}
}
