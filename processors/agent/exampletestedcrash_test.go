package agent_test

import (
	"context"
	"fmt"
	"time"

	"github.com/turntable-streams/turntable/processors/agent"
	"github.com/turntable-streams/turntable/processors/agent/agenttest"
	"github.com/turntable-streams/turntable/processors/processortest"
	"github.com/turntable-streams/turntable/processors/turn"
	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/processors/turn/tools"
)

// booker makes an agent with a tool that books a seat.
func booker(seats map[string]bool) *agent.Agent {
	book := tools.New("book", "Books a seat.", func(ctx context.Context, _ struct{}) (string, error) {
		seats[tools.CallOf(ctx).Key()] = true
		return "booked", nil
	})
	a, err := agent.New("booker", agent.Config{
		Model: think.Func(nil), // no test calls it
		Tools: []tools.Tool{book}, Turn: turn.Config{ToolTimeout: time.Minute},
	})
	if err != nil {
		panic(err)
	}
	return a
}

// seatIsBookedOnce is the body of a test function: the agent is killed when the seat is booked, and it does not know yet.
func seatIsBookedOnce(t processortest.TB) {
	seats := map[string]bool{}
	s := agenttest.New(t, booker(seats))
	s.Hold("book")
	s.Model(agenttest.Call("book", `{}`))
	s.Say("session-1", "A seat, please")
	s.Crash()
	s.Release("book")
	s.Model(think.Say("You have a seat."))
	fmt.Println(s.Answer("session-1").Content, len(s.Calls("book")), "calls,", len(seats), "seat")
}

// slowToolIsAnsweredFor is the body of another one: the clock is the test's.
func slowToolIsAnsweredFor(t processortest.TB) {
	s := agenttest.New(t, booker(map[string]bool{}))
	s.Hold("book")
	s.Model(agenttest.Call("book", `{}`), think.Say("I do not know whether you have a seat."))
	s.Say("session-1", "A seat, please")
	s.Advance(time.Minute)
	fmt.Println(s.Answer("session-1").Content)
}

// A test shows what a crash in the middle of a call does, and what a tool that does not answer does.
func Example_testOfCrashesAndTimeouts() {
	t := &console{}
	seatIsBookedOnce(t)
	slowToolIsAnsweredFor(t)
	t.end()
	// Output:
	// You have a seat. 2 calls, 1 seat
	// I do not know whether you have a seat.
}
