# A program of test/reach.py, which says what it must do: with the R package hdf5r.
suppressPackageStartupMessages(library(hdf5r))
words <- commandArgs(TRUE)

# Column n + 1 of the dataset becomes n + 1.
put <- function(file, n) {
    if (!file$exists("d"))
        file$create_dataset("d", dtype = h5types$H5T_NATIVE_INT, space = H5S$new("simple", dims = c(1000, 100)),
                            chunk_dims = c(1000, 1))
    file[["d"]][, n + 1] <- rep(n + 1L, 1000)
}

if (words[1] == "read") {
    file <- H5File$new(paste0("hdf5r.h5", words[-1]), "r")
    values <- file[["d"]][1000, ]
    cat(values[values != 0])
} else {
    file <- H5File$new("hdf5r.h5", "a")
    put(file, if (words[1] == "write") as.integer(words[2]) else 3)
    if (words[1] == "crash") {
        file$flush()
        put(file, 4)
        cat("ready\n")
        flush(stdout())
        Sys.sleep(600)
    }
}
file$close_all()
