package latency_test

import (
	"context"
	"fmt"
	"log"
	"strings"
	"time"

	"github.com/turntable-streams/turntable/processors/memoir/latency"
)

func ExampleGraph() {
	graph, err := latency.Graph("quay", latency.Config{Expiry: 7 * 24 * time.Hour})
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
		var all latency.Aggregate
		for _, a := range tools {
			p99, _ := a.Quantile(0.99)
			fmt.Println(a.Tool, a.Count, a.Errors, p99)
			all = all.Merge(a)
		}
		median, _ := all.Quantile(0.5)
		fmt.Println(all.Count, all.Longest, all.Mean(), median)
	}()
	if err := table.Run(context.Background()); err != nil {
		log.Fatal(err)
	}
}
