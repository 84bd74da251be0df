package tools_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/turn/tools"
)

// printer replaces a processors.Publisher.
type printer struct{}

func (printer) Publish(_ context.Context, records ...processors.Outbound) error {
	for _, r := range records {
		fmt.Println(r.Topic, r.Key, string(r.Headers["turntable.id"]))
	}
	return nil
}

func Example() {
	worker, err := tools.NewWorker("pilot", printer{}, map[string]tools.Func{
		// A result.
		"berth_lookup": func(_ context.Context, c tools.Call) (any, error) {
			var input struct {
				At string `json:"at"`
			}
			if err := c.Bind(&input); err != nil {
				return nil, err
			}
			return map[string]string{"berth": "N4", "at": input.At}, nil
		},
		// An error; its text is sent to the model.
		"order_crane": func(context.Context, tools.Call) (any, error) { return nil, errors.New("no crane is free") },
		// A result that is sent later, through the callback door.
		"ask_pilot": func(_ context.Context, c tools.Call) (any, error) {
			callback, err := c.Token()
			if err != nil {
				return nil, err
			}
			fmt.Println("asked, with a token:", callback != "", "and a key for repeats:", c.Key())
			return tools.Pending{}, nil
		},
	}, tools.Config{TokenSecret: "Zs9dPfG1kLm3nBvC5xXzQwErTyUiOpA7=", TokenTTL: 24 * time.Hour})
	if err != nil {
		fmt.Println(err)
		return
	}
	// worker.Run(ctx, brokers) takes calls from the topic; here they are passed directly.
	for _, name := range []string{"berth_lookup", "order_crane", "ask_pilot"} {
		r := call("t", name, `{"at":"18:00"}`)
		r.Timestamp = time.Now()
		r.Headers[0].Value = []byte("turn/1/tool-use/" + name)
		if err := worker.Handle(context.Background(), r); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// pilot-tool-use-result s turn/1/tool-use/berth_lookup/result
	// pilot-tool-use-result s turn/1/tool-use/order_crane/result
	// asked, with a token: true and a key for repeats: turn/1/tool-use/ask_pilot
}
