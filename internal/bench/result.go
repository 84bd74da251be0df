package main

// result contains the measurements of one subject in one scenario.
type result struct {
	Subject string `json:"subject"`
	scenario

	Turns     int      `json:"turns"`
	PerSecond float64  `json:"turns_per_second"`
	Load      latency  `json:"load"`
	Alone     *latency `json:"alone,omitempty"`

	// CPU seconds per 1,000 turns; nil if the system does not report it.
	CPU       *float64 `json:"cpu_seconds_per_1000_turns,omitempty"`
	DriverCPU *float64 `json:"driver_cpu_seconds_per_1000_turns,omitempty"`
	BrokerCPU *float64 `json:"broker_cpu_seconds_per_1000_turns,omitempty"`
	// Resident memory of all instances of the processor in bytes: the peak, and the value after the measured phase.
	ResidentPeak *int64 `json:"resident_peak_bytes,omitempty"`
	Resident     *int64 `json:"resident_bytes,omitempty"`
	// Log is the growth of the agent's topics on the brokers' disks, in bytes per turn. Records are the bytes of keys and
	// values that the player wrote and read.
	Log     *float64           `json:"log_bytes_per_turn,omitempty"`
	Logs    map[string]float64 `json:"log_bytes_per_turn_by_topic,omitempty"`
	Records float64            `json:"player_bytes_per_turn"`

	// Recovered and Restarted are the times from the process's start until it runs with the stored sessions: Recovered
	// reads them from the table's changelog, Restarted from disk.
	Recovered *float64 `json:"recovered_seconds,omitempty"`
	Restarted *float64 `json:"restarted_seconds,omitempty"`

	Repeats   int            `json:"repeats"`
	RepeatsOf map[string]int `json:"repeats_by_record,omitempty"`
	Broken    map[string]int `json:"broken,omitempty"`
	Ratio     *ratio         `json:"to_floor,omitempty"`
}

// ratio divides a processor's figures by those of the floor in the same scenario.
type ratio struct {
	CPU       float64 `json:"cpu,omitzero"`
	PerSecond float64 `json:"turns_per_second,omitzero"`
	AloneP50  float64 `json:"alone_p50,omitzero"`
}

func (r *result) fill(t *tally, before, after usageReading) {
	r.Turns, r.PerSecond, r.Load = t.ended, t.perSecond(), t.quantiles()
	turns := float64(max(1, t.ended))
	cpu := func(from, to usage) *float64 {
		v := (to.cpu - from.cpu).Seconds() / turns * 1000
		return &v
	}
	if before.ok && after.ok {
		r.CPU, r.DriverCPU = cpu(before.processor, after.processor), cpu(before.driver, after.driver)
		r.ResidentPeak, r.Resident = &after.processor.peak, &after.processor.resident
	}
	if before.brokerOK && after.brokerOK {
		r.BrokerCPU = cpu(before.broker, after.broker)
	}
	if before.logs != nil && after.logs != nil {
		var all float64
		r.Logs = map[string]float64{}
		for topic, size := range after.logs {
			if grown := float64(size-before.logs[topic]) / turns; grown > 0 {
				r.Logs[topic] = grown
				all += grown
			}
		}
		r.Log = &all
	}
	moved := after.traffic.read + after.traffic.written - before.traffic.read - before.traffic.written
	r.Records = float64(moved) / turns
}

// compare sets the ratios to a floor.
func (r *result) compare(floor *result) {
	if floor == nil || r == floor {
		return
	}
	by := func(a, b float64) float64 {
		if b == 0 {
			return 0
		}
		return a / b
	}
	r.Ratio = &ratio{PerSecond: by(r.PerSecond, floor.PerSecond)}
	if r.CPU != nil && floor.CPU != nil {
		r.Ratio.CPU = by(*r.CPU, *floor.CPU)
	}
	if r.Alone != nil && floor.Alone != nil {
		r.Ratio.AloneP50 = by(r.Alone.P50, floor.Alone.P50)
	}
}
