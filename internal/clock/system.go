package clock

import "time"

// System returns the machine's clock.
func System() Clock { return system{} }

type system struct{}

func (system) Now() time.Time { return time.Now() }

func (system) NewTicker(period time.Duration) Ticker { return ticking{time.NewTicker(period)} }

type ticking struct{ *time.Ticker }

func (t ticking) C() <-chan time.Time { return t.Ticker.C }
