package embedded_test

import (
	"fmt"

	"github.com/turntable-streams/turntable/processors/embedded"
)

func ExampleStart() {
	broker, err := embedded.Start(embedded.Config{Partitions: 4})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer broker.Close()
	fmt.Println(len(broker.Addrs()), "address for processors.New")
	// Output: 1 address for processors.New
}
