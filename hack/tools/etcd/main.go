// Command etcd is the etcd server, nothing else.
//
// It exists because go.etcd.io/etcd/server/v3 carries replace directives, so
// its own main package cannot be installed from another module; the function
// that package calls can be called from here instead.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() {
	etcdmain.Main(os.Args)
}
