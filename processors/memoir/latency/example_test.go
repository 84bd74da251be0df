package latency_test

import (
	"context"
	"fmt"
	"log"
	"strings"
	"time"

	"github.com/turntable-streams/turntable/processors/memoir/latency"
	"github.com/turntable-streams/turntable/topics"
)

func ExampleGraph() {
	graph, err := latency.Graph("quay", latency.WithExpiry(7*24*time.Hour))
	if err != nil {
		panic(err)
	}
	// Pass it to processors.New.
	fmt.Println(graph.Group(), "reads", strings.Join(graph.InputStreams().Topics(), ", "))
	// Output: quay-latencies reads quay-tool-use-latency
}

// One process shows the latencies of all tools.
func ExampleFollow() {
	table, err := latency.Follow([]string{"localhost:9092"}, "quay")
	if err != nil {
		log.Fatal(err)
	}
	go func() {
		<-table.Ready()
		tools, _ := table.All()
		for _, a := range tools {
			p99, _ := a.Quantile(0.99)
			fmt.Println(a.Tool, a.Count, a.Errors, p99)
		}
	}()
	if err := table.Run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func ExampleAggregate_Merge() {
	now := time.UnixMilli(1_790_000_000_000)
	aggregate := func(tool string, latencies ...int64) latency.Aggregate {
		var row *latency.ToolLatencies
		for i, ms := range latencies {
			row = latency.Apply(row, tool, &latency.Record{
				ID: fmt.Sprint(tool, i), Value: topics.ToolLatency{LatencyMS: ms},
			}, now, latency.DefaultRules()).Row
		}
		a, err := latency.AggregateOf(tool, row)
		if err != nil {
			panic(err)
		}
		return a
	}
	all := aggregate("berth_lookup", 100, 110, 120).Merge(aggregate("tide_table", 5))
	median, _ := all.Quantile(0.5)
	fmt.Println(all.Count, all.Longest, all.Mean(), median.Round(10*time.Millisecond))
	// Output: 4 120ms 83.75ms 100ms
}
