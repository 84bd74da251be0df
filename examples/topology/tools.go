package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/turntable-streams/turntable/processors/turn/tools"
)

// sum is the input of the calculator.
type sum struct {
	A        float64 `json:"a"`
	Operator string  `json:"operator" jsonschema:"one of + - * /"`
	B        float64 `json:"b"`
}

func (s sum) String() string { return fmt.Sprintf("%s %s %s", number(s.A), s.Operator, number(s.B)) }

// told is the result of a tool: a text for the answer and, of the calculator, the value.
type told struct {
	Text  string   `json:"text"`
	Value *float64 `json:"value,omitzero"`
}

// A tool is a Go function. Its error becomes an error result, which the model reads.
var (
	calculator = tools.New("calculator", "Computes.", calculate)
	clock      = tools.New("clock", "Tells the time.", tellTime)
)

var errZero = errors.New("division by zero")

func calculate(_ context.Context, s sum) (told, error) {
	var value float64
	switch s.Operator {
	case "+":
		value = s.A + s.B
	case "-":
		value = s.A - s.B
	case "*":
		value = s.A * s.B
	case "/":
		if s.B == 0 {
			return told{}, errZero
		}
		value = s.A / s.B
	default:
		return told{}, fmt.Errorf("unknown operator %q", s.Operator)
	}
	return told{Text: s.String() + " is " + number(value), Value: &value}, nil
}

// number formats a number with as many digits as are exact.
func number(f float64) string { return strconv.FormatFloat(f, 'g', 12, 64) }

// place is the input of the clock.
type place struct {
	Zone string `json:"zone,omitzero" jsonschema:"a time zone such as Europe/Berlin; UTC if it is missing"`
}

func tellTime(_ context.Context, p place) (told, error) {
	zone, err := time.LoadLocation(p.Zone) // that of "" is UTC
	if err != nil {
		return told{}, fmt.Errorf("unknown time zone %q", p.Zone)
	}
	return told{Text: fmt.Sprintf("it is %s (%s)", time.Now().In(zone).Format("15:04:05"), zone)}, nil
}
