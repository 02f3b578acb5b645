module catamaran.local/oracle/lines

go 1.26.0
