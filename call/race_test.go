package call_test

import "sync"

// rounds is how often a race is run: less often where everything is slow.
func rounds(n int) int { return max(n/raceFactor, 5) }

// race runs n functions that start together.
func race(n int, do func(i int)) {
	var ready, done sync.WaitGroup
	start := make(chan struct{})
	ready.Add(n)
	for i := range n {
		done.Go(func() {
			ready.Done()
			<-start
			do(i)
		})
	}
	ready.Wait()
	close(start)
	done.Wait()
}
