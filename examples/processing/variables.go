package main

import (
	"cmp"
	"fmt"
	"math"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

// variable returns the value of a variable; a blank one counts as unset.
func variable(name string) string { return strings.TrimSpace(os.Getenv(name)) }

// duration reads a whole number of units from 1 to most, and returns unset for a blank variable.
func duration(name string, unit, most, unset time.Duration) (time.Duration, error) {
	text := variable(name)
	if text == "" {
		return unset, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if limit := int64(most / unit); err != nil || n < 1 || n > limit {
		return unset, fmt.Errorf("%s: want a whole number from 1 to %d", name, limit)
	}
	return time.Duration(n) * unit, nil
}

// dollars reads an amount into to, which a blank variable does not change.
func dollars(name string, to *float64) error {
	text := variable(name)
	if text == "" {
		return nil
	}
	amount, err := strconv.ParseFloat(text, 64)
	if err != nil || !(amount > 0) || math.IsInf(amount, 0) {
		return fmt.Errorf("%s: want a positive number", name)
	}
	*to = amount
	return nil
}

// address reads a port, of the loopback interface, or host:port. Port 0 is any that is free. Only a host opens an address to
// other machines: 0.0.0.0 means all interfaces.
func address(name string) (string, error) {
	text := variable(name)
	if text == "" {
		return "", nil
	}
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		host, port = "", text
	}
	host = cmp.Or(host, "127.0.0.1")
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return "", fmt.Errorf("%s: want a port, or host:port", name)
	}
	return net.JoinHostPort(host, port), nil
}

// flagged reads a variable that is true or false; a blank one is false.
func flagged(name string) (bool, error) {
	switch text := variable(name); {
	case strings.EqualFold(text, "true"):
		return true, nil
	case text == "" || strings.EqualFold(text, "false"):
		return false, nil
	default:
		return false, fmt.Errorf("%s: want true or false", name)
	}
}
